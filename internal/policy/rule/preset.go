package rule

import (
	"maps"

	"coder/internal/policy"
)

// Preset is what holds where the person's own rules say nothing, and how far
// those rules reach.
type Preset struct {
	Name string
	// Verdicts by class: read, write, bash, fetch, note, default.
	Verdicts map[string]policy.Verdict
	// Floor is set if rules can only make it stricter.
	Floor bool
	// Lifts are the classes for which the preset's verdict holds even where
	// the person's rules, for any use of the class, would ask.
	Lifts []string
	// Readers is set if commands known to only read run without being asked about.
	Readers bool
	// Wary is set if every other command is asked about each time, whatever
	// was allowed or remembered.
	Wary bool
	// Unchecked is set if commands are not judged at all.
	Unchecked bool
}

var presets = map[string]Preset{
	"strict":   {Verdicts: verdicts(policy.Deny, policy.Allow, policy.Deny, policy.Deny, policy.Deny), Floor: true},
	"balanced": {Verdicts: verdicts(policy.Ask, policy.Allow, policy.Ask, policy.Ask, policy.Ask), Readers: true},
	"build":    {Verdicts: verdicts(policy.Ask, policy.Allow, policy.Ask, policy.Ask, policy.Ask), Readers: true},
	"plan": {
		Verdicts: verdicts(policy.Ask, policy.Allow, policy.Deny, policy.Ask, policy.Ask),
		Floor:    true, Readers: true, Wary: true,
	},
	"auto-edit": {
		Verdicts: verdicts(policy.Ask, policy.Allow, policy.Allow, policy.Ask, policy.Ask),
		Lifts:    []string{"write"}, Readers: true,
	},
	"yolo": {
		Verdicts: verdicts(policy.Allow, policy.Allow, policy.Allow, policy.Allow, policy.Allow),
		Lifts:    []string{"default", "read", "write", "bash", "fetch", "note"}, Readers: true, Unchecked: true,
	},
}

func verdicts(other, read, write, bash, fetch policy.Verdict) map[string]policy.Verdict {
	return map[string]policy.Verdict{
		"default": other, "read": read, "write": write, "bash": bash, "fetch": fetch, "note": policy.Allow,
	}
}

// PresetNamed finds a preset.
func PresetNamed(name string) (Preset, bool) {
	p, ok := presets[name]
	p.Name = name
	p.Verdicts = maps.Clone(p.Verdicts)
	return p, ok
}
