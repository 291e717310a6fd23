package differential

// The error of a machine that lacks what a comparison needs.

// MissingError says which capability of this machine a test needs and lacks.
// Tests are skipped for it, by package need, and fail for any other error.
type MissingError struct {
	What string
}

func (e *MissingError) Error() string { return "differential: needs " + e.What }
