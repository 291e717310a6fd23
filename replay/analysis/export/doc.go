// Package export writes what a recording executed in the formats of other tools.
package export
