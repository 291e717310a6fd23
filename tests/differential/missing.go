package differential

// MissingError says which capability of this machine a test needs and lacks.
// Tests skip on it, through one function, and fail on any other error.
type MissingError struct {
	What string
}

func (e *MissingError) Error() string { return "differential: needs " + e.What }
