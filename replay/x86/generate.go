package x86

// How the files *_gen.go of this package are made: go generate runs internal/isagen,
// whose tables are isa/*.txt.

//go:generate go run ./internal/isagen
