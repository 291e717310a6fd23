package checkpoint

// Recordings that hold a moment and no time, as those of core files do. Nothing in the format says so: it
// follows from the intervals.

// IsMoment reports whether nothing runs in the recording: no interval has an event, nor an end behind
// the last one, so that each begins where it ends. There is no past to go back to then.
func (r *Recording) IsMoment() bool {
	for i := range r.manifest.IntervalList {
		if in := &r.manifest.IntervalList[i]; in.Events > 0 || in.Forced {
			return false
		}
	}
	return len(r.manifest.IntervalList) > 0
}

// IsOfCore reports whether the recording was made from a core file.
func (r *Recording) IsOfCore() bool { return r.Manifest().Keep == KeepCore }
