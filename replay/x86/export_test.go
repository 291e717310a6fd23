package x86

// SetDefaultEngine has new processors execute by e, until the function it returns is called.
func SetDefaultEngine(e Engine) (undo func()) {
	before := defaultEngine
	defaultEngine = e
	return func() { defaultEngine = before }
}
