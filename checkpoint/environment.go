package checkpoint

import "strings"

// Which environment variables a manifest holds, and which of their values are masked. It
// is about the manifest only: the environment in the program's memory is recorded as any
// other memory.

// MaskedValue stands in a manifest for the value of an environment variable that
// is not held.
const MaskedValue = "(masked)"

// secretNames are parts of the names of variables that hold secrets, in upper
// case.
var secretNames = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "KEY", "CREDENTIAL", "AUTH", "COOKIE"}

// MaskEnvironment returns what a manifest holds of an environment, "NAME=value"
// each: nothing when policy is "drop", everything when it is "keep", and
// everything with the values of variables that look like secrets masked when it
// is empty. Any other policy is a list of names, separated by commas, of the only
// variables that are held. env is not changed.
func MaskEnvironment(env []string, policy string) []string {
	switch policy {
	case "keep":
		return env
	case "drop":
		return nil
	}
	var out []string
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case policy == "" && value != "" && looksSecret(name):
			out = append(out, name+"="+MaskedValue)
		case policy == "" || hasName(policy, name):
			out = append(out, e)
		}
	}
	return out
}

func looksSecret(name string) bool {
	name = strings.ToUpper(name)
	for _, s := range secretNames {
		if strings.Contains(name, s) {
			return true
		}
	}
	return false
}

func hasName(list, name string) bool {
	for n := range strings.SplitSeq(list, ",") {
		if n == name {
			return true
		}
	}
	return false
}
