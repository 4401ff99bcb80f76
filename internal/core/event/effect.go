package event

import (
	"slices"
	"strings"
)

// Effect is one thing that a call would touch. The zero Kind is the worst case. On record an effect is
// one string: its kind, a space, its target.
type Effect struct {
	Kind   EffectKind
	Target string // a path relative to the workspace, a command line, a URL

	unknownText string // the recorded text, if its kind is unknown
}

// EffectKind is the kind of an effect.
type EffectKind uint8

// The kinds of effect, worst first.
const (
	EffectUnknown EffectKind = iota
	EffectExec
	EffectWrite
	EffectNet
	EffectNote // coder's own memory, such as the todo list; nothing of the user's
	EffectRead
)

var effectKinds = []string{"unknown", "exec", "write", "net", "note", "read"}

func (k EffectKind) String() string { return effectKinds[k] }

func (e Effect) String() string {
	if e.unknownText != "" {
		return e.unknownText
	}
	return e.Kind.String() + " " + e.Target
}

// MarshalText encodes e as on record.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText decodes the output of MarshalText. A kind from another version becomes unknown, and is
// encoded again unchanged.
func (e *Effect) UnmarshalText(data []byte) error {
	kind, target, spaced := strings.Cut(string(data), " ")
	*e = Effect{Target: target}
	if i := slices.Index(effectKinds, kind); i >= 0 && spaced {
		e.Kind = EffectKind(i)
	} else {
		e.unknownText = string(data)
	}
	return nil
}

// AreHarmless reports whether a call with these effects is harmless however often it runs: it only reads,
// or writes coder's own notes.
func AreHarmless(effects []Effect) bool {
	return len(effects) > 0 && !slices.ContainsFunc(effects,
		func(e Effect) bool { return e.Kind != EffectRead && e.Kind != EffectNote })
}

// Targets returns the targets of effects, without empty ones.
func Targets(effects []Effect) (all []string) {
	for _, e := range effects {
		if e.Target != "" {
			all = append(all, e.Target)
		}
	}
	return all
}

// IsOwnTitle reports whether a call's title is coder's own text, and not a name from the model or the
// user.
func IsOwnTitle(tool, title string, effects []Effect) bool {
	switch tool {
	case "todoread", "jobs_list":
		return true
	case "skill":
		return title == "list of skills" // no skill has this name
	}
	return slices.Contains(effects, Effect{Kind: EffectNote, Target: "todo list"})
}

// IsUntouched reports whether a call left the files that it names unchanged: the record says so, or the
// call failed and recorded no changes.
func IsUntouched(asked ToolCallRequested, done ToolCallCompleted) bool {
	return len(done.Changes) == 0 && (done.IsError || len(asked.Before) > 0)
}

// JoinEffects joins effects, as on record, with sep.
func JoinEffects(effects []Effect, sep string) string {
	texts := make([]string, len(effects))
	for i, e := range effects {
		texts[i] = e.String()
	}
	return strings.Join(texts, sep)
}

// effectVerbs are the verbs for each kind of effect, followed by the target.
var effectVerbs = []string{"may do anything:", "executes", "writes", "reaches", "notes", "reads"}

// noteNames are the named parts of coder's own memory. A skill may have the same name.
var noteNames = map[string]string{"todo list": "the todo list", "question": "a question", "plan": "the plan",
	"subtask": "a subtask", "background jobs": "the background jobs"}

// DescribeEffects describes the effects of the call, translated by say.
func (e ToolCallRequested) DescribeEffects(say func(string) string) string {
	texts := make([]string, len(e.Effects))
	for i, effect := range e.Effects {
		if effect.unknownText != "" {
			texts[i] = effect.unknownText
			continue
		}
		target := effect.Target
		if own := noteNames[target]; own != "" && effect.Kind == EffectNote && e.Tool != "skill" {
			target = say(own)
		}
		texts[i] = say(effectVerbs[effect.Kind]) + " " + target
	}
	return strings.Join(texts, "; ")
}
