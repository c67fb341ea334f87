package engine

// Uncounted is the total of work that cannot be counted: it begins with 0 done and
// ends with 1. A person at a terminal sees that it goes on; nothing else is shown.
const Uncounted = -1

// busy shows that something goes on until end is called. Nothing may ask the
// user or give git the terminal meanwhile.
func (e *Engine) busy(what string) (end func()) {
	if e.Progress == nil {
		return func() {}
	}
	e.Progress(what, 0, Uncounted)
	return func() { e.Progress(what, 1, Uncounted) }
}
