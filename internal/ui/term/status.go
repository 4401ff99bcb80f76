package term

// status is the one live line, shown by whoever owns the bottom of the screen.
type status struct {
	show       func(string)
	text, told string
}

func (s *status) set(text string) { s.text = text }

// tell shows the status if it has changed.
func (s *status) tell() {
	if s.show == nil || s.text == s.told {
		return
	}
	s.told = s.text
	s.show(s.text)
}
