package term

import "time"

// statusEvery is how often a status that only counts up is shown anew.
const statusEvery = 100 * time.Millisecond

// status is the one live line, shown by whoever owns the bottom of the screen.
type status struct {
	show func(string)
	now  func() time.Time

	text, told string
	counting   bool // text differs from told in a number only
	at         time.Time
}

// set changes the status for certain.
func (s *status) set(text string) { s.text, s.counting = text, false }

// count changes the status when enough time has passed.
func (s *status) count(text string) { s.text, s.counting = text, true }

// tell shows the status if it has changed.
func (s *status) tell() {
	if s.show == nil || s.text == s.told {
		return
	}
	if s.now != nil {
		now := s.now()
		if s.counting && now.Sub(s.at) < statusEvery {
			return
		}
		s.at = now
	}
	s.told = s.text
	s.show(s.text)
}
