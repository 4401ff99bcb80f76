package orchestrator

import (
	"cmp"
	"context"
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
	told    int     // the window by the server's own word; 0: it did not say
	warned  bool    // that it is too small, or that the server cuts requests
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

func (g *gauge) factor() float64 { return cmp.Or(g.scale, 1) }

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

// leastCut is how many tokens a request has at least that was cut to them: fewer
// are no window. mostOff is how far below our estimate the truth can be. Windows
// are multiples of windowStep; what was cut to one falls hardly short of it.
const (
	leastCut   = 1500
	mostOff    = 0.65
	windowStep = 1024
	shortBy    = 32
)

// cut reports whether a server that counted so many tokens where we had estimated
// so many has cut the request. If what it counted looks like a window, it is
// taken for its window.
func (g *gauge) cut(estimated int, u chat.Usage) bool {
	if u.In < leastCut || u.Cached > 0 || float64(u.In) > mostOff*g.factor()*float64(estimated) {
		return false
	}
	if (u.In+shortBy)%windowStep <= shortBy {
		g.told = u.In
	}
	return true
}

// refused learns that a request of so many tokens, by our count, was too long
// for a window of so many, if that is said.
func (g *gauge) refused(size, window int) {
	if window > 0 {
		g.told = window
	}
	if window > 0 && size > window {
		return
	}
	if cut := int(refusedCut * float64(size)); g.ceiling == 0 || cut < g.ceiling {
		g.ceiling = cut
	}
}

// window is how many tokens a request may have; 0 if that is not known.
func (g *gauge) window(limit int) int {
	least := max(limit, 0)
	for _, n := range []int{g.ceiling, g.told} {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
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
	room, left := window/4, window-max(o.contextUsed(st.set.Model, st.fixed), o.fixed(st))
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
	if !set.Lean && (window == 0 || float64(tokens) <= fixedShare*float64(window)) {
		return list, tokens
	}
	for i, s := range list {
		list[i] = provider.ToolSpec{Name: s.Name, Doc: firstParagraph(s.Doc), Schema: bareSchema(s.Schema)}
	}
	return list, fixed(set, list)
}

// FixedTokens is how many tokens of every request are the system text, and how
// many describe the tools, by our own count. It may be asked while a turn runs.
func (o *Orchestrator) FixedTokens() (system, tools int) {
	set := o.Settings()
	var list []provider.ToolSpec
	for s := range set.Tools.Specs() {
		list = append(list, provider.ToolSpec{Name: s.Name, Doc: s.Doc, Schema: s.Schema})
	}
	system = tokens.Tokens(set.System)
	return system, fixed(set, list) - system
}

// fixed is how many tokens of every request are there before anything is said.
func fixed(set Settings, specs []provider.ToolSpec) int {
	n := tokens.Tokens(set.System)
	for _, s := range specs {
		n += tokens.Tokens(s.Name) + tokens.Tokens(s.Doc) + tokens.Bytes(s.Schema)
	}
	return n
}

// firstParagraph is the beginning of a tool's description: what it does and what
// comes back.
func firstParagraph(doc string) string {
	head, _, _ := strings.Cut(strings.TrimSpace(doc), "\n\n")
	return clip.Text(head, 400)
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

// NoRoomError reports a window in which nothing can be said, and what fills it.
type NoRoomError struct {
	Window, System, Tools int // tokens, about
	Count                 int // of tools
	Lean                  bool
	Raise                 string // how a larger window is had
}

func (e *NoRoomError) Error() string {
	what := "set runtime.tools to lean"
	if e.Lean {
		what = "disable tools (agents.MODE.tools)"
	}
	return fmt.Sprintf("a window of about %d tokens is too small: the system text takes about %d, the descriptions of %d tools about %d; %s; or %s",
		e.Window, e.System, e.Count, e.Tools, e.Raise, what)
}

// Is makes it one way of being too long.
func (e *NoRoomError) Is(target error) bool { return target == provider.ErrContextTooLong }

// noRoom reports that nothing can be said in so small a window.
func (o *Orchestrator) noRoom(st *turnState) error {
	system := int(o.gauge.factor() * float64(tokens.Tokens(st.set.System)))
	return &provider.Error{Kind: provider.ErrContextTooLong, Err: &NoRoomError{
		Window: o.window(st.set), System: system, Tools: o.fixed(st) - system, Count: len(st.tools), Lean: st.set.Lean, Raise: raiseWindow(st.set),
	}}
}

// retell has the model told of the tools as fits what is known of the window
// now.
func (o *Orchestrator) retell(st *turnState) {
	if o.Settings().Mode == st.set.Mode { // the turn stays in the mode it began in
		o.freezeSettings(st)
		return
	}
	st.tools, st.fixed = o.specs(st.set)
}

// tellWindow learns the window by the server's own word, and says so once if the
// request under way is larger.
func (o *Orchestrator) tellWindow(ctx context.Context, st *turnState, window int) error {
	g := o.gauge.of(st.set.Model)
	size := int(g.factor() * float64(st.fixed+o.Talk.Total(tokens.MessageTokens)))
	g.told, st.window = window, window
	o.retell(st)
	if size <= window || g.warned {
		return nil
	}
	g.warned = true
	return o.warn(ctx, st, fmt.Sprintf(
		"this request has about %d tokens, but the server accepts %d: it will be refused or silently cut; %s", size, window, raiseWindow(st.set)))
}

// weigh learns from what a reply reports of a request of so many tokens, by our
// count, and says once that the server has not read all of it.
func (o *Orchestrator) weigh(ctx context.Context, st *turnState, estimated int, u *chat.Usage) error {
	if u == nil {
		return nil
	}
	g := o.gauge.of(st.set.Model)
	if !g.cut(estimated, *u) {
		g.reported(estimated, u.In)
		return nil
	}
	o.retell(st)
	if g.warned {
		return nil
	}
	g.warned = true
	return o.warn(ctx, st, fmt.Sprintf(
		"the server read %d of about %d tokens: it cut off the rest, and the model did not see it; %s", u.In, estimated, raiseWindow(st.set)))
}

// raiseWindow is how a larger window is had.
func raiseWindow(set Settings) string {
	return cmp.Or(set.RaiseWindow, "give it a larger window (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx; llama.cpp: --ctx-size)")
}
