package station

import "context"

// Runs reports whether a place runs here. An unreadable one counts as running.
func (s *Station) Runs() bool {
	answer, err := s.places(context.Background())
	if err != nil {
		return true
	}
	for _, place := range answer.Places {
		if place.Runs {
			return true
		}
	}
	return false
}
