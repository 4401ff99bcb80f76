package mode

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// State is the mode a session is in. The zero State is not usable; see
// [NewState].
type State struct {
	switches map[string]map[string]bool // mode → tool → on

	mu       sync.Mutex // guards the fields below
	barred   []string   // modes that cannot be gone to
	mode     Mode
	preset   string
	last     string // the last mode that was neither plan nor yolo
	fromYolo bool   // planning began in yolo
}

// NewState starts in mode. Switches, by mode and tool, change the table.
func NewState(mode string, switches map[string]map[string]bool) (*State, error) {
	s := &State{switches: switches, last: Build}
	return s, s.Switch(mode)
}

// Current is the mode in force and the preset of permissions, which is the
// mode's own unless another was chosen since.
func (s *State) Current() (m Mode, preset string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode, s.preset
}

// Bar keeps the session from going to some modes from now on, whoever wants to.
func (s *State) Bar(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.barred = append(s.barred, names...)
}

// Switch goes to another mode, and to the permissions that come with it.
func (s *State) Switch(name string) error {
	m, err := Lookup(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.barred, m.Name) {
		return fmt.Errorf("mode %s was not allowed when coder started", m.Name)
	}
	s.fromYolo = m.Name == Plan && (s.mode.Name == Yolo || s.fromYolo)
	m.switched = s.switches[m.Name]
	s.mode, s.preset = m, m.Preset
	if m.Name != Plan && m.Name != Yolo {
		s.last = m.Name
	}
	return nil
}

// presets lists every preset; those that are also modes bring the mode along.
var presets = []string{Strict, Balanced, Build, Plan, Default, AutoEdit, Yolo}

// Presets are the names of the presets of permissions.
func Presets() []string { return slices.Clone(presets) }

// Preset changes the permissions. A preset that is also a mode brings the mode
// along; the others leave it as it is.
func (s *State) Preset(name string) error {
	name = strings.ToLower(name)
	switch {
	case !slices.Contains(presets, name):
		return fmt.Errorf("unknown preset %q: use one of %s", name, strings.Join(presets, ", "))
	case name != Strict && name != Balanced:
		return s.Switch(name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.preset = name
	return nil
}

// How much may happen unasked, the least first: by mode, and by preset.
var (
	modeWidths   = [][]string{{Plan}, {Default}, {Build}, {AutoEdit}, {Yolo}}
	presetWidths = [][]string{{Strict}, {Plan}, {Balanced, Build, Default}, {AutoEdit}, {Yolo}}
)

// Narrows reports whether in mode, under preset (the mode's own if it is
// empty), nothing happens unasked that would not happen now. Of what it does not
// know it says no.
func (s *State) Narrows(mode, preset string) bool {
	m, err := Lookup(mode)
	if err != nil {
		return false
	}
	now, nowPreset := s.Current()
	return atMost(modeWidths, m.Name, now.Name) && atMost(presetWidths, cmp.Or(preset, m.Preset), nowPreset)
}

func atMost(widths [][]string, name, than string) bool {
	width := func(name string) int {
		return slices.IndexFunc(widths, func(same []string) bool { return slices.Contains(same, name) })
	}
	return width(name) >= 0 && width(name) <= width(than)
}

// Toggled is where Tab leads: from plan to the last mode in which work was
// done, from any other to plan. It never leads into yolo.
func (s *State) Toggled() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode.Name == Plan {
		return s.last
	}
	return Plan
}

// FromYolo reports whether planning began in yolo.
func (s *State) FromYolo() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fromYolo
}

// Next is the mode after another in the round of modes that Shift+Tab makes.
// Yolo is not in it.
func Next(from string) string {
	round := []string{Build, Plan, Default, AutoEdit}
	return round[(slices.Index(round, from)+1)%len(round)]
}
