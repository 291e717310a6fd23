// Package text prepares what is shown to people: names that a recording brings along
// are escaped, so that they do nothing to a terminal. It knows nothing of recordings.
package text
