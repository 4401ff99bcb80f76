package mode

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/message"
)

// State is a session's current mode. The zero State is not usable; see [NewState].
type State struct {
	switches map[string]map[string]bool // mode → tool → on

	mu          sync.Mutex // guards the fields below
	barredModes []string   // modes that cannot be gone to
	mode        Mode
	preset      string
	lastWorking string // the last mode that was neither plan nor yolo
	fromYolo    bool   // plan mode began in yolo
}

// NewState starts in mode. switches, by mode and tool, modify the table.
func NewState(mode string, switches map[string]map[string]bool) (*State, error) {
	s := &State{switches: switches, lastWorking: Build}
	return s, s.Switch(mode)
}

// Current returns the current mode and preset, which is the mode's own unless the user chose another.
func (s *State) Current() (m Mode, preset string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode, s.preset
}

// Forbid keeps the session from going to some modes from now on, whoever wants to.
func (s *State) Forbid(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.barredModes = append(s.barredModes, names...)
}

// Switch changes to another mode and its permissions.
func (s *State) Switch(name string) error {
	m, err := Lookup(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.barredModes, m.Name) {
		return message.Errorf("mode %s was not allowed when coder started", m.Name)
	}
	s.fromYolo = m.Name == Plan && (s.mode.Name == Yolo || s.fromYolo)
	m.overrides = s.switches[m.Name]
	s.mode, s.preset = m, m.Preset
	if m.Name != Plan && m.Name != Yolo {
		s.lastWorking = m.Name
	}
	return nil
}

// presets lists every preset; a preset that is also a mode selects the mode, too.
var presets = []string{Strict, Balanced, Build, Plan, Default, AutoEdit, Yolo}

// Presets returns the names of the permission presets.
func Presets() []string { return slices.Clone(presets) }

// SetPreset changes the permissions. A preset that is also a mode changes the mode, too; the others keep it.
func (s *State) SetPreset(name string) error {
	name = strings.ToLower(name)
	switch {
	case !slices.Contains(presets, name):
		return message.Errorf("unknown preset %q: use one of %s", name, strings.Join(presets, ", "))
	case name != Strict && name != Balanced:
		return s.Switch(name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.preset = name
	return nil
}

// These tables order modes and presets by how much may happen without approval, the least first.
var (
	modesByWidth   = [][]string{{Plan}, {Default}, {Build}, {AutoEdit}, {Yolo}}
	presetsByWidth = [][]string{{Strict}, {Plan}, {Balanced, Build, Default}, {AutoEdit}, {Yolo}}
)

// IsNarrower reports whether mode, under preset (the mode's own if it is empty), allows nothing without
// approval that is not allowed now. For an unknown mode or preset it returns false.
func (s *State) IsNarrower(mode, preset string) bool {
	m, err := Lookup(mode)
	if err != nil {
		return false
	}
	now, nowPreset := s.Current()
	return isNotWider(modesByWidth, m.Name, now.Name) && isNotWider(presetsByWidth, cmp.Or(preset, m.Preset), nowPreset)
}

func isNotWider(widths [][]string, name, than string) bool {
	width := func(name string) int {
		return slices.IndexFunc(widths, func(same []string) bool { return slices.Contains(same, name) })
	}
	return width(name) >= 0 && width(name) <= width(than)
}

// ToggleTarget returns where Tab leads: from plan to the last working
// mode, from any other mode to plan. It never leads to yolo.
func (s *State) ToggleTarget() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode.Name == Plan {
		return s.lastWorking
	}
	return Plan
}

// FromYolo reports whether plan mode began in yolo.
func (s *State) FromYolo() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fromYolo
}

// Next returns the mode after from in the Shift+Tab cycle, which omits yolo.
func Next(from string) string {
	round := []string{Build, Plan, Default, AutoEdit}
	return round[(slices.Index(round, from)+1)%len(round)]
}
