package checkpoint

import (
	"slices"
	"testing"
)

func TestMaskEnvironment(t *testing.T) {
	env := []string{"HOME=/root", "API_TOKEN=abc=def", "aws_secret_access_key=x", "DB_PASSWORD=", "SSH_AUTH_SOCK=/tmp/s", "PATH=/bin", "odd"}
	for _, c := range []struct {
		policy string
		want   []string
	}{
		{"", []string{"HOME=/root", "API_TOKEN=(masked)", "aws_secret_access_key=(masked)", "DB_PASSWORD=", "SSH_AUTH_SOCK=(masked)", "PATH=/bin", "odd"}},
		{"keep", env},
		{"drop", nil},
		{"PATH,API_TOKEN,NONE", []string{"API_TOKEN=abc=def", "PATH=/bin"}},
	} {
		if got := MaskEnvironment(env, c.policy); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.policy, got, c.want)
		}
	}
}
