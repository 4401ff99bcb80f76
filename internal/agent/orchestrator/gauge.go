package orchestrator

import (
	"encoding/json"
	"fmt"
	"strings"

	tokens "coder/internal/agent/prompt"
	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/model/provider"
)

// gauge is what was learnt of how the provider counts. It begins with our own
// estimate, and is set right by what replies report and by refusals.
type gauge struct {
	model   string
	scale   float64 // tokens by the provider's count for one of ours; 0 stands for 1
	ceiling int     // no request may be longer, since one that was has been refused; 0: none was
}

// Bounds of what is learnt: a report beyond them is not about tokens.
const (
	leastScale = 0.8
	mostScale  = 6
	refusedCut = 0.85 // of the size that was refused, to be on the safe side
)

// of is the gauge for a model: what was learnt of another does not count.
func (g *gauge) of(model string) *gauge {
	if g.model != model {
		*g = gauge{model: model}
	}
	return g
}

func (g *gauge) factor() float64 {
	if g.scale == 0 {
		return 1
	}
	return g.scale
}

// count is how many tokens a message takes, as far as is known.
func (g *gauge) count(m chat.Message) int {
	return int(g.factor() * float64(tokens.MessageTokens(m)))
}

// reported learns from a reply that the provider counted so many tokens where we
// had estimated so many. What is more than expected counts at once, what is less
// little by little.
func (g *gauge) reported(estimated, counted int) {
	if estimated < 200 || counted <= 0 {
		return // too little to tell
	}
	is := min(max(float64(counted)/float64(estimated), leastScale), mostScale)
	if is < g.factor() {
		is = 0.8*g.factor() + 0.2*is
	}
	g.scale = is
}

// refused learns that a request of so many tokens, by our count, was too long.
func (g *gauge) refused(size int) {
	if cut := int(refusedCut * float64(size)); g.ceiling == 0 || cut < g.ceiling {
		g.ceiling = cut
	}
}

// window is how many tokens a request may have; 0 if that is not known.
func (g *gauge) window(limit int) int {
	if g.ceiling > 0 && (limit <= 0 || g.ceiling < limit) {
		return g.ceiling
	}
	return max(limit, 0)
}

// Bounds of a reply in a small window. In a large one the server's own limit is
// the better one.
const (
	smallWindow = 32 << 10
	leastReply  = 256
)

// replyRoom is how many tokens a reply may have: a quarter of a small window, or
// what the conversation leaves of it. It halves where it must, so that the
// request begins as the one before it did for as long as it can. 0 is no bound.
func (o *Orchestrator) replyRoom(st *turnState) int {
	window := o.window(st.set)
	if window == 0 || window > smallWindow {
		return 0
	}
	room, left := window/4, window-max(o.contextUsed(st.set), o.fixed(st))
	for room > left && room > leastReply {
		room /= 2
	}
	return max(room, leastReply)
}

// fixedShare is how much of the window the system text and the tools may take
// before the tools are described in short.
const fixedShare = 0.4

// specs describe the tools to the model: in short, where the window is small.
// With them comes how many tokens every request has before anything is said.
func (o *Orchestrator) specs(set Settings) (list []provider.ToolSpec, tokens int) {
	for s := range set.Tools.Specs() {
		list = append(list, provider.ToolSpec{Name: s.Name, Doc: s.Doc, Schema: s.Schema})
	}
	window := o.gauge.of(set.Model).window(set.ContextLimit)
	tokens = fixed(set, list)
	if window == 0 || float64(tokens) <= fixedShare*float64(window) {
		return list, tokens
	}
	for i, s := range list {
		list[i] = provider.ToolSpec{Name: s.Name, Doc: firstSentence(s.Doc), Schema: bareSchema(s.Schema)}
	}
	return list, fixed(set, list)
}

// describeTools gives the turn its tools as the model is told of them.
func (o *Orchestrator) describeTools(st *turnState) {
	st.tools, st.fixed = o.specs(st.set)
}

// fixed is how many tokens of every request are there before anything is said.
func fixed(set Settings, specs []provider.ToolSpec) int {
	n := tokens.Tokens(set.System)
	for _, s := range specs {
		n += tokens.Tokens(s.Name) + tokens.Tokens(s.Doc) + tokens.Bytes(s.Schema)
	}
	return n
}

// firstSentence is the beginning of a tool's description.
func firstSentence(doc string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(doc), "\n")
	if head, _, ok := strings.Cut(line, ". "); ok {
		line = head + "."
	}
	return clip.Text(line, 200)
}

// bareSchema is a schema without what it says in words.
func bareSchema(schema json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return schema
	}
	bare, err := json.Marshal(withoutWords(v, false))
	if err != nil {
		return schema
	}
	return bare
}

// withoutWords drops descriptions. Names of properties are not keywords, even if
// one is called description.
func withoutWords(v any, names bool) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if k == "description" && !names {
				delete(v, k)
				continue
			}
			v[k] = withoutWords(v[k], k == "properties" && !names)
		}
	case []any:
		for i := range v {
			v[i] = withoutWords(v[i], false)
		}
	}
	return v
}

// errNoRoom reports that nothing can be said in so small a window.
func errNoRoom(fixed, window int) error {
	return &provider.Error{Kind: provider.ErrContextTooLong, Err: fmt.Errorf(
		"the system text and the tools alone take about %d tokens, and the window has %d: choose a model with a larger one, or switch tools off (agents.MODE.tools)", fixed, window)}
}
