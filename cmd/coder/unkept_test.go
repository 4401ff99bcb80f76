package main

import "testing"

// TestATerminalAndAPageSayWhatIsNotKept: the program at a terminal ends with the
// code for a session that is not all on disk, and a page in the browser shows it.
func TestATerminalAndAPageSayWhatIsNotKept(t *testing.T) {
	for disk, code := range map[string]int{"mkdir ENOSPC": 56, "": 0} {
		t.Run("terminal "+disk, func(t *testing.T) {
			h := hold(t)
			h.Stderr = nil
			h.Env = append(h.Env, "CODER_TEST_DISK="+disk)
			h.at("xterm", false).until("›").write("hi\r").until("ok").write("\x04").over(code)
		})
	}
	t.Run("web", func(t *testing.T) {
		p := newProgram(t)
		p.file("model", "say ok\nrepeat\n")
		p.env = append(p.env, "CODER_TEST_DISK=mkdir ENOSPC")
		s := newSite(p, "--script", "model")
		id := s.begin("hi")
		s.stream(id, 0, "ok")
		s.until("this session is not being saved")
	})
}
