package event

import (
	"slices"
	"strings"
)

// Effect is one thing a call would touch. The zero Kind is the worst case. On
// record an effect is one string: its kind, a space, its target.
type Effect struct {
	Kind   EffectKind
	Target string // a path relative to the workspace, a command line, a URL

	text string // as the record has it, where no kind that we know begins it
}

// EffectKind is the sort of an effect.
type EffectKind uint8

// The kinds of effect, worst first.
const (
	EffectUnknown EffectKind = iota
	EffectExec
	EffectWrite
	EffectNet
	EffectNote // the program's own memory, such as its todo list; nothing of the user's
	EffectRead
)

var effectKinds = []string{"unknown", "exec", "write", "net", "note", "read"}

func (k EffectKind) String() string { return effectKinds[k] }

func (e Effect) String() string {
	if e.text != "" {
		return e.text
	}
	return e.Kind.String() + " " + e.Target
}

// MarshalText writes e as it stands on record.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what MarshalText wrote. A kind of another version counts
// as unknown, and is written again as it was.
func (e *Effect) UnmarshalText(data []byte) error {
	kind, target, spaced := strings.Cut(string(data), " ")
	*e = Effect{Target: target}
	if i := slices.Index(effectKinds, kind); i >= 0 && spaced {
		e.Kind = EffectKind(i)
	} else {
		e.text = string(data)
	}
	return nil
}

// Harmless reports whether nothing can come of a call with these effects, however
// often it runs: it only reads, or writes the program's own notes.
func Harmless(effects []Effect) bool {
	return len(effects) > 0 && !slices.ContainsFunc(effects, func(e Effect) bool { return e.Kind != EffectRead && e.Kind != EffectNote })
}

// Targets are what effects touch, without those that name nothing.
func Targets(effects []Effect) (all []string) {
	for _, e := range effects {
		if e.Target != "" {
			all = append(all, e.Target)
		}
	}
	return all
}

// OwnTitle reports whether the title of a call is in the program's own words, and not what the
// model or the person calls something.
func OwnTitle(tool, title string, effects []Effect) bool {
	switch tool {
	case "todoread", "jobs_list":
		return true
	case "skill":
		return title == "list of skills" // no skill has such a name
	}
	return slices.Contains(effects, Effect{Kind: EffectNote, Target: "todo list"})
}

// Untouched reports whether a call left the files it names as they were: the record says so, or it
// failed with nothing known of them.
func Untouched(asked ToolCallRequested, done ToolCallCompleted) bool {
	return len(done.Changes) == 0 && (done.IsError || len(asked.Before) > 0)
}

// JoinEffects writes effects as they stand on record, with sep between them.
func JoinEffects(effects []Effect, sep string) string {
	texts := make([]string, len(effects))
	for i, e := range effects {
		texts[i] = e.String()
	}
	return strings.Join(texts, sep)
}

// told are the kinds of effect in words that go on with what is touched.
var told = []string{"may do anything:", "executes", "writes", "reaches", "notes", "reads"}

// ownNotes are the parts of the program's own memory that have names of its own; a skill
// can be called the same.
var ownNotes = map[string]string{"todo list": "the todo list", "question": "a question", "plan": "the plan", "subtask": "a subtask", "background jobs": "the background jobs"}

// Touches is what the call would touch, for a reader, in the words of say.
func (e ToolCallRequested) Touches(say func(string) string) string {
	texts := make([]string, len(e.Effects))
	for i, effect := range e.Effects {
		if effect.text != "" {
			texts[i] = effect.text
			continue
		}
		target := effect.Target
		if own := ownNotes[target]; own != "" && effect.Kind == EffectNote && e.Tool != "skill" {
			target = say(own)
		}
		texts[i] = say(told[effect.Kind]) + " " + target
	}
	return strings.Join(texts, "; ")
}
