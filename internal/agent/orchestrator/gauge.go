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

// tokenGauge is what coder learned about how the provider counts tokens. It begins
// with coder's own estimate; reported counts and rejections correct it.
type tokenGauge struct {
	model          string
	scale          float64 // the provider's tokens for one of coder's; 0 means 1
	ceiling        int     // the longest request, since a longer one was rejected; 0: none was
	reportedWindow int     // the window as the server reported it; 0: unknown
	warned         bool    // about a window that is too small, or a server that cuts requests
}

// Limits on what is learned: a report beyond them is not about tokens.
const (
	minScale      = 0.8
	maxScale      = 6
	refusedMargin = 0.85 // of the rejected size, for safety
)

// forModel returns the gauge for a model: another model's counts do not apply.
func (g *tokenGauge) forModel(model string) *tokenGauge {
	if g.model != model {
		*g = tokenGauge{model: model}
	}
	return g
}

func (g *tokenGauge) effectiveScale() float64 { return cmp.Or(g.scale, 1) }

// count estimates the tokens in a message.
func (g *tokenGauge) count(m chat.Message) int {
	return int(g.effectiveScale() * float64(tokens.EstimateMessageTokens(m)))
}

// learnUsage learns from a reply that the provider counted counted tokens for an
// estimate of estimated. A higher ratio applies at once, a lower one gradually.
func (g *tokenGauge) learnUsage(estimated, counted int) {
	if estimated < 200 || counted <= 0 {
		return // too few for a ratio
	}
	is := min(max(float64(counted)/float64(estimated), minScale), maxScale)
	if is < g.effectiveScale() {
		is = 0.8*g.effectiveScale() + 0.2*is
	}
	g.scale = is
}

// minCutTokens is the least size in tokens of a cut request: less is no window.
// maxCutRatio is how far below the estimate the real count can be. Windows are
// multiples of windowGranularity; a request cut to one is shorter by at most minCutShortfall.
const (
	minCutTokens      = 1500
	maxCutRatio       = 0.65
	windowGranularity = 1024
	minCutShortfall   = 32
)

// isCut reports whether a server cut a request, judging by the estimate and the server's
// count. If the count looks like a window size, cut records it as the window.
func (g *tokenGauge) isCut(estimated int, u chat.Usage) bool {
	if u.In < minCutTokens || u.Cached > 0 || float64(u.In) > maxCutRatio*g.effectiveScale()*float64(estimated) {
		return false
	}
	if (u.In+minCutShortfall)%windowGranularity <= minCutShortfall {
		g.reportedWindow = u.In
	}
	return true
}

// learnRefusal learns that a request of size tokens, by coder's count, was too long for the window, if known.
func (g *tokenGauge) learnRefusal(size, window int) {
	if window > 0 {
		g.reportedWindow = window
	}
	if window > 0 && size > window {
		return
	}
	if cut := int(refusedMargin * float64(size)); g.ceiling == 0 || cut < g.ceiling {
		g.ceiling = cut
	}
}

// maxRequestTokens returns how many tokens a request may have; 0 if unknown.
func (g *tokenGauge) maxRequestTokens(limit int) int {
	least := max(limit, 0)
	for _, n := range []int{g.ceiling, g.reportedWindow} {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// Limits on a reply in a small window. In a large window the server's own limit is better.
const (
	smallWindowTokens = 32 << 10
	minReplyTokens    = 256
)

// maxReplyTokens returns how many tokens a reply may have: a quarter of a small window,
// or what the conversation leaves of it. It only halves the number, so that the
// beginning of requests stays the same for as long as possible. 0 means no limit.
func (o *Orchestrator) maxReplyTokens(st *turnState) int {
	window := o.windowTokens(st.settings)
	if window == 0 || window > smallWindowTokens {
		return 0
	}
	room, left := window/4, window-max(o.contextTokens(st.settings.Model, st.fixed), o.fixedTokens(st))
	for room > left && room > minReplyTokens {
		room /= 2
	}
	return max(room, minReplyTokens)
}

// maxFixedShare is the share of the window for the system text
// and the tools above which the tools get short descriptions.
const maxFixedShare = 0.4

// toolSpecs returns the descriptions of the tools for the model, shortened if the window
// is small, and the number of tokens that every request has before the first message.
func (o *Orchestrator) toolSpecs(set Settings) (list []provider.ToolSpec, tokens int) {
	for s := range set.Tools.Specs() {
		list = append(list, provider.ToolSpec{Name: s.Name, Doc: s.Doc, Schema: s.Schema})
	}
	window := o.gauge.forModel(set.Model).maxRequestTokens(set.ContextLimit)
	tokens = fixedTokens(set, list)
	if !set.ShortToolDocs && (window == 0 || float64(tokens) <= maxFixedShare*float64(window)) {
		return list, tokens
	}
	for i, s := range list {
		list[i] = provider.ToolSpec{Name: s.Name, Doc: firstParagraph(s.Doc), Schema: stripDescriptions(s.Schema)}
	}
	return list, fixedTokens(set, list)
}

// FixedTokens returns how many tokens in every request are the system text, and how
// many describe the tools, by coder's own count. It may be called during a turn.
func (o *Orchestrator) FixedTokens() (system, tools int) {
	set := o.Settings()
	var list []provider.ToolSpec
	for s := range set.Tools.Specs() {
		list = append(list, provider.ToolSpec{Name: s.Name, Doc: s.Doc, Schema: s.Schema})
	}
	system = tokens.EstimateTokens(set.System)
	return system, fixedTokens(set, list) - system
}

// fixedTokens returns how many tokens every request has before the first message.
func fixedTokens(set Settings, specs []provider.ToolSpec) int {
	n := tokens.EstimateTokens(set.System)
	for _, s := range specs {
		n += tokens.EstimateTokens(s.Name) + tokens.EstimateTokens(s.Doc) + tokens.EstimateBytesTokens(s.Schema)
	}
	return n
}

// firstParagraph returns the first paragraph of a tool's description: what it does and returns.
func firstParagraph(doc string) string {
	head, _, _ := strings.Cut(strings.TrimSpace(doc), "\n\n")
	return clip.Truncate(head, 400)
}

// stripDescriptions returns a schema without descriptions.
func stripDescriptions(schema json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return schema
	}
	bare, err := json.Marshal(removeDescriptions(v, false))
	if err != nil {
		return schema
	}
	return bare
}

// removeDescriptions removes descriptions, but keeps a property named description.
func removeDescriptions(v any, names bool) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if k == "description" && !names {
				delete(v, k)
				continue
			}
			v[k] = removeDescriptions(v[k], k == "properties" && !names)
		}
	case []any:
		for i := range v {
			v[i] = removeDescriptions(v[i], false)
		}
	}
	return v
}

// WindowTooSmallError reports a window too small for any message, and what fills it.
type WindowTooSmallError struct {
	Window, System, Tools int // tokens, approximately
	ToolCount             int // number of tools
	ShortDescriptions     bool
	RaiseHint             string // how to get a larger window
}

func (e *WindowTooSmallError) Error() string {
	what := "set runtime.tools to lean"
	if e.ShortDescriptions {
		what = "disable tools (agents.MODE.tools)"
	}
	return fmt.Sprintf("a window of about %d tokens is too small: the system text takes about %d, the descriptions of %d tools about %d; %s; or %s",
		e.Window, e.System, e.ToolCount, e.Tools, e.RaiseHint, what)
}

// Is makes a WindowTooSmallError match [provider.ErrContextTooLong].
func (e *WindowTooSmallError) Is(target error) bool { return target == provider.ErrContextTooLong }

// windowTooSmall returns the error for a window too small for any message.
func (o *Orchestrator) windowTooSmall(st *turnState) error {
	system := int(o.gauge.effectiveScale() * float64(tokens.EstimateTokens(st.settings.System)))
	return &provider.Error{Kind: provider.ErrContextTooLong, Err: &WindowTooSmallError{
		Window: o.windowTokens(st.settings), System: system, Tools: o.fixedTokens(st) - system, ToolCount: len(st.tools),
		ShortDescriptions: st.settings.ShortToolDocs, RaiseHint: raiseWindowHint(st.settings),
	}}
}

// refreshToolSpecs describes the tools to the model again, to fit the window as now known.
func (o *Orchestrator) refreshToolSpecs(st *turnState) {
	if o.Settings().Mode == st.settings.Mode { // the turn stays in its mode
		o.freezeSettings(st)
		return
	}
	st.tools, st.fixed = o.toolSpecs(st.settings)
}

// recordWindow records the window that the server reported, and warns once if the current request is larger.
func (o *Orchestrator) recordWindow(ctx context.Context, st *turnState, window int) error {
	g := o.gauge.forModel(st.settings.Model)
	size := int(g.effectiveScale() * float64(st.fixed+o.Conversation.TotalTokens(tokens.EstimateMessageTokens)))
	g.reportedWindow, st.window = window, window
	o.refreshToolSpecs(st)
	if size <= window || g.warned {
		return nil
	}
	g.warned = true
	return o.warn(ctx, st, fmt.Sprintf(
		"this request has about %d tokens, but the server accepts %d: it will be refused or silently cut; %s", size, window,
		raiseWindowHint(st.settings)))
}

// learnFromUsage learns from the usage reported for a request of an estimated
// size, and warns once if the server did not read all of it.
func (o *Orchestrator) learnFromUsage(ctx context.Context, st *turnState, estimated int, u *chat.Usage) error {
	if u == nil {
		return nil
	}
	g := o.gauge.forModel(st.settings.Model)
	if !g.isCut(estimated, *u) {
		g.learnUsage(estimated, u.In)
		return nil
	}
	o.refreshToolSpecs(st)
	if g.warned {
		return nil
	}
	g.warned = true
	return o.warn(ctx, st, fmt.Sprintf(
		"the server read %d of about %d tokens: it cut off the rest, and the model did not see it; %s", u.In, estimated,
		raiseWindowHint(st.settings)))
}

// raiseWindowHint returns how to get a larger window.
func raiseWindowHint(set Settings) string {
	return cmp.Or(set.RaiseWindowHint,
		"give it a larger window (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx; llama.cpp: --ctx-size)")
}
