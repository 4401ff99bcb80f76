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

// gauge is what coder learned about how the provider counts tokens. It begins
// with coder's own estimate; reported counts and rejections correct it.
type gauge struct {
	model   string
	scale   float64 // the provider's tokens for one of coder's; 0 means 1
	ceiling int     // the longest request, since a longer one was rejected; 0: none was
	told    int     // the window as the server reported it; 0: unknown
	warned  bool    // about a window that is too small, or a server that cuts requests
}

// Limits on what is learned: a report beyond them is not about tokens.
const (
	leastScale = 0.8
	mostScale  = 6
	refusedCut = 0.85 // of the rejected size, for safety
)

// of returns the gauge for a model: another model's counts do not apply.
func (g *gauge) of(model string) *gauge {
	if g.model != model {
		*g = gauge{model: model}
	}
	return g
}

func (g *gauge) factor() float64 { return cmp.Or(g.scale, 1) }

// count estimates the tokens in a message.
func (g *gauge) count(m chat.Message) int {
	return int(g.factor() * float64(tokens.MessageTokens(m)))
}

// reported learns from a reply that the provider counted counted tokens for an
// estimate of estimated. A higher ratio applies at once, a lower one gradually.
func (g *gauge) reported(estimated, counted int) {
	if estimated < 200 || counted <= 0 {
		return // too few for a ratio
	}
	is := min(max(float64(counted)/float64(estimated), leastScale), mostScale)
	if is < g.factor() {
		is = 0.8*g.factor() + 0.2*is
	}
	g.scale = is
}

// leastCut is the least size in tokens of a cut request: less is no window.
// mostOff is how far below the estimate the real count can be. Windows are
// multiples of windowStep; a request cut to one is shorter by at most shortBy.
const (
	leastCut   = 1500
	mostOff    = 0.65
	windowStep = 1024
	shortBy    = 32
)

// cut reports whether a server cut a request, judging by the estimate and the server's
// count. If the count looks like a window size, cut records it as the window.
func (g *gauge) cut(estimated int, u chat.Usage) bool {
	if u.In < leastCut || u.Cached > 0 || float64(u.In) > mostOff*g.factor()*float64(estimated) {
		return false
	}
	if (u.In+shortBy)%windowStep <= shortBy {
		g.told = u.In
	}
	return true
}

// refused learns that a request of size tokens, by coder's count, was too long for the window, if known.
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

// window returns how many tokens a request may have; 0 if unknown.
func (g *gauge) window(limit int) int {
	least := max(limit, 0)
	for _, n := range []int{g.ceiling, g.told} {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// Limits on a reply in a small window. In a large window the server's own limit is better.
const (
	smallWindow = 32 << 10
	leastReply  = 256
)

// replyRoom returns how many tokens a reply may have: a quarter of a small window,
// or what the conversation leaves of it. It only halves the number, so that the
// beginning of requests stays the same for as long as possible. 0 means no limit.
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

// fixedShare is the share of the window for the system text
// and the tools above which the tools get short descriptions.
const fixedShare = 0.4

// specs returns the descriptions of the tools for the model, shortened if the window
// is small, and the number of tokens that every request has before the first message.
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

// FixedTokens returns how many tokens in every request are the system text, and how
// many describe the tools, by coder's own count. It may be called during a turn.
func (o *Orchestrator) FixedTokens() (system, tools int) {
	set := o.Settings()
	var list []provider.ToolSpec
	for s := range set.Tools.Specs() {
		list = append(list, provider.ToolSpec{Name: s.Name, Doc: s.Doc, Schema: s.Schema})
	}
	system = tokens.Tokens(set.System)
	return system, fixed(set, list) - system
}

// fixed returns how many tokens every request has before the first message.
func fixed(set Settings, specs []provider.ToolSpec) int {
	n := tokens.Tokens(set.System)
	for _, s := range specs {
		n += tokens.Tokens(s.Name) + tokens.Tokens(s.Doc) + tokens.Bytes(s.Schema)
	}
	return n
}

// firstParagraph returns the first paragraph of a tool's description: what it does and returns.
func firstParagraph(doc string) string {
	head, _, _ := strings.Cut(strings.TrimSpace(doc), "\n\n")
	return clip.Text(head, 400)
}

// bareSchema returns a schema without descriptions.
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

// withoutWords removes descriptions, but keeps a property named description.
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

// NoRoomError reports a window too small for any message, and what fills it.
type NoRoomError struct {
	Window, System, Tools int // tokens, approximately
	Count                 int // number of tools
	Lean                  bool
	Raise                 string // how to get a larger window
}

func (e *NoRoomError) Error() string {
	what := "set runtime.tools to lean"
	if e.Lean {
		what = "disable tools (agents.MODE.tools)"
	}
	return fmt.Sprintf("a window of about %d tokens is too small: the system text takes about %d, the descriptions of %d tools about %d; %s; or %s",
		e.Window, e.System, e.Count, e.Tools, e.Raise, what)
}

// Is makes a NoRoomError match [provider.ErrContextTooLong].
func (e *NoRoomError) Is(target error) bool { return target == provider.ErrContextTooLong }

// noRoom returns the error for a window too small for any message.
func (o *Orchestrator) noRoom(st *turnState) error {
	system := int(o.gauge.factor() * float64(tokens.Tokens(st.set.System)))
	return &provider.Error{Kind: provider.ErrContextTooLong, Err: &NoRoomError{
		Window: o.window(st.set), System: system, Tools: o.fixed(st) - system, Count: len(st.tools), Lean: st.set.Lean, Raise: raiseWindow(st.set),
	}}
}

// retell describes the tools to the model again, to fit the window as now known.
func (o *Orchestrator) retell(st *turnState) {
	if o.Settings().Mode == st.set.Mode { // the turn stays in its mode
		o.freezeSettings(st)
		return
	}
	st.tools, st.fixed = o.specs(st.set)
}

// tellWindow records the window that the server reported, and warns once if the current request is larger.
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

// weigh learns from the usage reported for a request of an estimated
// size, and warns once if the server did not read all of it.
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

// raiseWindow returns how to get a larger window.
func raiseWindow(set Settings) string {
	return cmp.Or(set.RaiseWindow, "give it a larger window (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx; llama.cpp: --ctx-size)")
}
