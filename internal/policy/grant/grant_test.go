package grant_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/policy/grant"
	"coder/internal/tool"
)

type args struct {
	X    string `json:"x" also:"text"`
	Only []int  `json:"only_hunks,omitzero" hidden:"yes"`
}

// world is a tool that counts its runs, with a plan that a test may change.
type world struct {
	ran  atomic.Int32
	plan tool.Plan
}

func (w *world) prepare(t *testing.T, written chat.ToolCall) *grant.Call {
	t.Helper()
	return w.prepareAs(t, "write", written, written.Args)
}

func (w *world) prepareAs(t *testing.T, name string, written chat.ToolCall, given json.RawMessage) *grant.Call {
	t.Helper()
	c, err := grant.Prepare(t.Context(), tool.Func[args]{
		Name: name,
		Plan: func(_ context.Context, a args) (tool.Plan, error) {
			p := w.plan
			p.Title = a.X
			if p.Effects == nil {
				p.Effects = []tool.Effect{{Kind: tool.Write, Target: a.X}}
			}
			return p, nil
		},
		Do: func(context.Context, args, io.Writer) (tool.Result, error) {
			w.ran.Add(1)
			return tool.Result{Summary: "done"}, nil
		},
	}, written, given)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func call(id, x string) chat.ToolCall {
	return chat.ToolCall{ID: id, Name: "write", Args: json.RawMessage(`{"x":"` + x + `"}`)}
}

func says(v policy.Verdict) policy.Policy {
	return policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) { return policy.Opinion{Verdict: v}, nil })
}

// judged is the call a, about which policy said v.
func (w *world) judged(t *testing.T, v policy.Verdict, c chat.ToolCall) *grant.Call {
	t.Helper()
	p := w.prepare(t, c)
	if _, _, err := p.Judge(t.Context(), says(v)); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAPolicyGrantsOnlyWhatItAllows(t *testing.T) {
	boom := policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{Verdict: policy.Allow}, errors.New("boom")
	})
	for name, tt := range map[string]struct {
		policy policy.Policy
		want   policy.Verdict
	}{
		"allow":              {says(policy.Allow), policy.Allow},
		"ask":                {says(policy.Ask), policy.Ask},
		"deny":               {says(policy.Deny), policy.Deny},
		"an unknown verdict": {says(policy.Allow + 1), policy.Deny},
		"allow, with error":  {boom, policy.Deny},
		"no policy":          {nil, policy.Deny},
		"a policy of none":   {policy.All(), policy.Deny},
	} {
		var w world
		c := w.prepare(t, call("c1", "a"))
		opinion, g, failed := c.Judge(t.Context(), tt.policy)
		if broken := strings.HasPrefix(name, "an unknown") || strings.Contains(name, "error"); (failed != nil) != broken {
			t.Errorf("%s: the error of the policy is %v", name, failed)
		}
		_, err := c.Run(t.Context(), io.Discard, g)
		if ran := w.ran.Load() == 1; opinion.Verdict != tt.want || ran != (tt.want == policy.Allow) || ran == (err != nil) {
			t.Errorf("%s: %v, ran=%v, %v", name, opinion.Verdict, ran, err)
		}
	}
}

func TestThePolicyJudgesTheCallThatRuns(t *testing.T) {
	var w world
	w.plan.Effects = []tool.Effect{{Kind: tool.Exec, Target: "a"}}
	c := w.prepare(t, call("c1", "a"))
	var seen policy.Case
	_, _, err := c.Judge(t.Context(), policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		seen = c
		return policy.Opinion{}, nil
	}))
	if err != nil || seen.Tool != "write" || seen.Call.ID != "c1" || seen.Plan.Title != "a" || seen.Plan.Effects[0].Kind != tool.Exec {
		t.Errorf("%v, judged %+v", err, seen)
	}
	if c.Plan().Title != "a" || c.Case().Call.ID != "c1" || string(c.Args()) != `{"x":"a"}` {
		t.Errorf("%+v, %+v, %s", c.Plan(), c.Case(), c.Args())
	}
}

func TestAGrantRunsItsCallOnce(t *testing.T) {
	var w world
	c, twin, other := w.prepare(t, call("c1", "a")), w.prepare(t, call("c1", "a")), w.prepare(t, call("c2", "a"))
	_, g, _ := c.Judge(t.Context(), says(policy.Allow))
	if !g.Covers(c) || !g.Covers(twin) || g.Covers(other) || g.Covers(nil) {
		t.Error("the grant covers another call, or not its own")
	}
	if _, err := other.Run(t.Context(), io.Discard, g); !errors.Is(err, grant.ErrNoGrant) {
		t.Errorf("another call: %v", err)
	}
	if res, err := c.Run(t.Context(), io.Discard, g); err != nil || res.Summary != "done" {
		t.Errorf("%+v, %v", res, err)
	}
	for _, again := range []*grant.Call{c, twin} {
		if _, err := again.Run(t.Context(), io.Discard, g); !errors.Is(err, grant.ErrNoGrant) || g.Covers(again) {
			t.Errorf("a second time: %v", err)
		}
	}
	if n := w.ran.Load(); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

// Copies of a grant are the same grant, whoever uses it first.
func TestAGrantIsUsedUpForAllItsCopies(t *testing.T) {
	var w world
	c := w.prepare(t, call("c1", "a"))
	g := c.Unjudged(false)
	var runs sync.WaitGroup
	for range 8 {
		runs.Go(func() { _, _ = c.Run(t.Context(), io.Discard, g) })
	}
	runs.Wait()
	if n := w.ran.Load(); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

func TestTheZeroGrantRunsNothing(t *testing.T) {
	var w world
	for name, c := range map[string]*grant.Call{"a call": w.prepare(t, call("c1", "a")), "no call": nil, "an empty call": new(grant.Call)} {
		if _, err := c.Run(t.Context(), io.Discard, grant.Grant{}); !errors.Is(err, grant.ErrNoGrant) || w.ran.Load() != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if g, err := (grant.Approval{}).Grant(w.prepare(t, call("c1", "a"))); err == nil || g != (grant.Grant{}) {
		t.Errorf("the zero approval grants %v, %v", g, err)
	}
}

// plain is a tool that takes any text.
type plain struct{ tool.Tool }

func (plain) Spec() tool.Spec                                               { return tool.Spec{Name: "plain"} }
func (p plain) Prepare(context.Context, json.RawMessage) (tool.Call, error) { return p, nil }
func (plain) Plan() tool.Plan                                               { return tool.Plan{Hunks: 3} }
func (plain) Run(context.Context, io.Writer) (tool.Result, error)           { return tool.Result{}, nil }

func TestACallWithoutNamedArgumentsIsMadeWholeOrNot(t *testing.T) {
	c, err := grant.Prepare(t.Context(), plain{}, chat.ToolCall{ID: "c1"}, []byte(`"text"`))
	if err != nil {
		t.Fatal(err)
	}
	_, _, _ = c.Judge(t.Context(), says(policy.Ask))
	if yes, err := c.Approve(question(c), uip.Response{ID: "q", Option: uip.OptionSome, Input: "1"}); err == nil || !strings.Contains(err.Error(), "in part") {
		t.Errorf("%v, %s", err, yes.Args())
	}
}

// Questions on record have digests of earlier versions.
func TestADigestIsTheSameInEveryVersion(t *testing.T) {
	var w world
	want := sha256.Sum256([]byte(`{"ID":"c1","Tool":"write","Args":"{\"x\":\"a\"}","Title":"a","Effects":[{"Kind":2,"Target":"a"}],` +
		`"Confined":"","Unconfined":false,"Sends":""}`))
	if got := w.prepare(t, call("c1", "a")).Digest(); got != hex.EncodeToString(want[:]) {
		t.Errorf("digest %s", got)
	}
	// Large arguments are hashed in pieces; where these end makes no difference.
	for shift := range 5 {
		text := strings.Repeat("a", shift) + strings.Repeat("界<\u2028é", 20_000)
		args := json.RawMessage(`{"x":"` + text + `"}`)
		want := sha256.Sum256(jsonx.MustMarshal(struct {
			ID, Tool, Args, Title string
			Effects               []any
			Confined              string
			Unconfined            bool
			Sends                 string
			Read                  string
		}{"c1", "write", "{}", text, []any{map[string]any{"Kind": 2, "Target": text}}, "", false, "", string(args)}))
		written := chat.ToolCall{ID: "c1", Name: "write", Args: json.RawMessage(`{}`)}
		if got := w.prepareAs(t, "write", written, args).Digest(); got != hex.EncodeToString(want[:]) {
			t.Errorf("large, shifted by %d: digest %s", shift, got)
		}
	}
}

func TestDigestsDiffer(t *testing.T) {
	var w world
	seen := map[string]string{w.prepare(t, call("c1", "a")).Digest(): "the call"}
	add := func(name string, c *grant.Call) {
		if other := seen[c.Digest()]; other != "" {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[c.Digest()] = name
	}
	add("another id", w.prepare(t, call("c2", "a")))
	add("other arguments", w.prepare(t, call("c1", "b")))
	add("another tool", w.prepareAs(t, "edit", call("c1", "a"), call("c1", "a").Args))
	add("the same, read otherwise", w.prepareAs(t, "write", chat.ToolCall{ID: "c1", Args: []byte(`{}`), Broken: "a"}, []byte(`{"x":"a"}`)))
	add("the same, read as another", w.prepareAs(t, "write", chat.ToolCall{ID: "c1", Args: []byte(`{}`), Broken: "b"}, []byte(`{"text":"a"}`)))
	for name, p := range map[string]tool.Plan{
		"another kind":   {Effects: []tool.Effect{{Kind: tool.Exec, Target: "a"}}},
		"another target": {Effects: []tool.Effect{{Kind: tool.Write, Target: "b"}}},
		"an effect more": {Effects: []tool.Effect{{Kind: tool.Write, Target: "a"}, {Kind: tool.Net, Target: "a"}}},
		"confined":       {Confined: "in a sandbox"},
		"unconfined":     {Unconfined: true},
		"sends":          {Sends: "a"},
		"executable":     {Executable: []string{"a"}},
	} {
		w := world{plan: p}
		add(name, w.prepare(t, call("c1", "a")))
	}
}

// question is what a person is asked about a call.
func question(c *grant.Call) uip.Request {
	return uip.Request{
		ID: "q", TaskID: "t", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Digest: c.Digest(),
		Display: uip.Display{Metadata: map[string]string{"toolCallId": "c1", uip.MetaHunks: "3"}},
		Options: []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionSome}, {ID: uip.OptionSession}, {ID: uip.OptionAlways}, {ID: uip.OptionAlwaysBelow}, {ID: "maybe"}, {ID: uip.OptionReject}},
	}
}

func TestAYesToTheQuestionAboutTheCallGrantsIt(t *testing.T) {
	for _, option := range []string{uip.OptionApprove, uip.OptionSession, uip.OptionAlways, uip.OptionAlwaysBelow} {
		var w world
		c := w.judged(t, policy.Ask, call("c1", "a"))
		yes, err := c.Approve(question(c), uip.Response{ID: "q", Option: option})
		if err != nil || yes.Args() != nil {
			t.Fatalf("%s: %v, %s", option, err, yes.Args())
		}
		twin := w.judged(t, policy.Ask, call("c1", "a")) // prepared anew when its turn comes
		g, err := yes.Grant(twin)
		if _, ran := twin.Run(t.Context(), io.Discard, g); err != nil || ran != nil {
			t.Errorf("%s: %v, %v", option, err, ran)
		}
	}
}

func TestWhatIsNoYesGrantsNothing(t *testing.T) {
	var w world
	w.plan.Hunks = 3
	c := w.judged(t, policy.Ask, call("c1", "a"))
	for name, tt := range map[string]struct {
		change func(q *uip.Request, a *uip.Response)
		why    string
	}{
		"no":                        {func(_ *uip.Request, a *uip.Response) { a.Option = uip.OptionReject }, `"reject"`},
		"an option of another kind": {func(_ *uip.Request, a *uip.Response) { a.Option = "maybe" }, `"maybe"`},
		"an option not offered":     {func(q *uip.Request, _ *uip.Response) { q.Options = q.Options[1:] }, "unknown option"},
		"no option":                 {func(_ *uip.Request, a *uip.Response) { a.Option = "" }, "an option must be chosen"},
		"only a comment":            {func(_ *uip.Request, a *uip.Response) { a.Option, a.Comment = "", "yes, if it is quick" }, "an option must be chosen"},
		"nobody":                    {func(_ *uip.Request, a *uip.Response) { a.Author = uip.NoAnswer(uip.Request{}).Author }, "no answer"},
		"the answer to another one": {func(_ *uip.Request, a *uip.Response) { a.ID = "r" }, "not"},
		"of another task":           {func(_ *uip.Request, a *uip.Response) { a.TaskID = "u" }, "not"},
		"a question about another":  {func(q *uip.Request, _ *uip.Response) { q.Digest = "ff" }, "another call"},
		"a question about none":     {func(q *uip.Request, _ *uip.Response) { q.Digest = "" }, "another call"},
		"dismissed":                 {func(_ *uip.Request, a *uip.Response) { a.Option, a.Dismissed = "", true }, "an option must be chosen"},
		"hunks that there are not":  {func(_ *uip.Request, a *uip.Response) { a.Option, a.Input = uip.OptionSome, "4" }, "not between 1 and 3"},
		"no hunks":                  {func(_ *uip.Request, a *uip.Response) { a.Option = uip.OptionSome }, "enter hunk numbers"},
		"more hunks than are shown": {func(q *uip.Request, a *uip.Response) {
			q.Display.Metadata[uip.MetaHunks] = "9"
			a.Option, a.Input = uip.OptionSome, "4"
		}, "not between 1 and 3"},
		"hunks and other arguments": {func(_ *uip.Request, a *uip.Response) { a.Option, a.Input, a.Args = uip.OptionSome, "1", []byte(`{}`) }, "other arguments"},
	} {
		q, a := question(c), uip.Response{ID: "q", Option: uip.OptionApprove}
		tt.change(&q, &a)
		yes, err := c.Approve(q, a)
		if err == nil || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: error %v, want %q", name, err, tt.why)
		}
		if g, err := yes.Grant(c); err == nil || g.Covers(c) {
			t.Errorf("%s: granted, %v", name, err)
		}
	}
}

func TestOnlyACallThatWasToBeAskedAboutIsApproved(t *testing.T) {
	var w world
	unjudged := w.prepare(t, call("c1", "a"))
	for name, c := range map[string]*grant.Call{"not judged": unjudged, "denied": w.judged(t, policy.Deny, call("c1", "a")), "allowed": w.judged(t, policy.Allow, call("c1", "a"))} {
		if yes, err := c.Approve(question(c), uip.Response{ID: "q", Option: uip.OptionApprove}); err == nil || yes.Args() != nil {
			t.Errorf("%s: approved", name)
		}
	}
}

func TestAnApprovalGrantsTheCallThatWasShownAndNoOther(t *testing.T) {
	var w world
	c := w.judged(t, policy.Ask, call("c1", "a"))
	yes, err := c.Approve(question(c), uip.Response{ID: "q", Option: uip.OptionApprove})
	if err != nil {
		t.Fatal(err)
	}
	riskier := world{plan: tool.Plan{Unconfined: true}}
	for name, tt := range map[string]struct {
		c  *grant.Call
		ok bool
	}{
		"the call":                  {c, true},
		"the call, allowed by now":  {w.judged(t, policy.Allow, call("c1", "a")), true},
		"another call":              {w.judged(t, policy.Ask, call("c2", "a")), false},
		"with other arguments":      {w.judged(t, policy.Ask, call("c1", "b")), false},
		"which does something else": {riskier.judged(t, policy.Ask, call("c1", "a")), false},
		"denied by now":             {w.judged(t, policy.Deny, call("c1", "a")), false},
		"not judged":                {w.prepare(t, call("c1", "a")), false},
		"none":                      {nil, false},
	} {
		if g, err := yes.Grant(tt.c); (err == nil) != tt.ok || g.Covers(tt.c) != tt.ok {
			t.Errorf("%s: %v, granted=%v", name, err, g.Covers(tt.c))
		}
	}
}

func TestAnApprovalWithOtherArgumentsGrantsThoseAlone(t *testing.T) {
	for _, option := range []string{uip.OptionApprove, uip.OptionAlways} {
		var w world
		c := w.judged(t, policy.Ask, call("c1", "a"))
		yes, err := c.Approve(question(c), uip.Response{ID: "q", Option: option, Args: call("", "b").Args})
		if err != nil || string(yes.Args()) != `{"x":"b"}` {
			t.Fatal(err, string(yes.Args()))
		}
		for name, tt := range map[string]struct {
			c  *grant.Call
			ok bool
		}{
			"those arguments":              {w.judged(t, policy.Ask, call("c1", "b")), true},
			"allowed":                      {w.judged(t, policy.Allow, call("c1", "b")), true},
			"the call that was shown":      {c, false},
			"those arguments, denied":      {w.judged(t, policy.Deny, call("c1", "b")), false},
			"those arguments, not judged":  {w.prepare(t, call("c1", "b")), false},
			"those arguments, another one": {w.judged(t, policy.Ask, call("c2", "b")), false},
			"none":                         {nil, false},
		} {
			if g, err := yes.Grant(tt.c); (err == nil) != tt.ok || g.Covers(tt.c) != tt.ok {
				t.Errorf("%s, %s: %v, granted=%v", option, name, err, g.Covers(tt.c))
			}
		}
	}
}

func TestSomeHunksGrantTheCallThatMakesThoseAlone(t *testing.T) {
	w := world{plan: tool.Plan{Hunks: 3}}
	c := w.judged(t, policy.Ask, call("c1", "a"))
	yes, err := c.Approve(question(c), uip.Response{ID: "q", Option: uip.OptionSome, Input: "3 1"})
	if err != nil || string(yes.Args()) != `{"only_hunks":[1,3],"x":"a"}` {
		t.Fatal(err, string(yes.Args()))
	}
	written := call("c1", "a")
	written.Args = yes.Args()
	part, err := c.PrepareChanged(t.Context(), written)
	if err != nil || part.Case().Tool != "write" {
		t.Fatal(err)
	}
	if _, err := yes.Grant(part); err == nil {
		t.Error("what no policy judged is granted")
	}
	if _, _, err := part.Judge(t.Context(), says(policy.Ask)); err != nil {
		t.Fatal(err)
	}
	if g, err := yes.Grant(part); err != nil || !g.Covers(part) {
		t.Errorf("the part: %v", err)
	}
	if g, err := yes.Grant(c); err == nil || g.Covers(c) {
		t.Error("the whole is granted")
	}
	all, err := c.Approve(question(c), uip.Response{ID: "q", Option: uip.OptionSome, Input: "1-3"})
	if g, no := all.Grant(c); err != nil || no != nil || all.Args() != nil || !g.Covers(c) {
		t.Errorf("all hunks: %v, %v, %s", err, no, all.Args())
	}
}

func TestACallThatCannotBePreparedIsNone(t *testing.T) {
	var w world
	c := w.prepare(t, call("c1", "a"))
	if bad, err := c.PrepareChanged(t.Context(), chat.ToolCall{ID: "c1", Args: []byte(`{"y":1}`)}); err == nil || bad != nil {
		t.Errorf("%v, %v", bad, err)
	}
}

func TestACallKnowsWhetherAPersonApprovedIt(t *testing.T) {
	for name, tt := range map[string]struct {
		grant func(*grant.Call) Grant
		want  bool
	}{
		"allowed by policy": {func(c *grant.Call) Grant { _, g, _ := c.Judge(t.Context(), says(policy.Allow)); return g }, false},
		"a person's hook":   {func(c *grant.Call) Grant { return c.Unjudged(false) }, false},
		"typed":             {func(c *grant.Call) Grant { return c.Unjudged(true) }, true},
		"approved": {func(c *grant.Call) Grant {
			_, _, _ = c.Judge(t.Context(), says(policy.Ask))
			yes, _ := c.Approve(question(c), uip.Response{ID: "q", Option: uip.OptionApprove})
			g, _ := yes.Grant(c)
			return g
		}, true},
	} {
		knows := new(knowing)
		c, err := grant.Prepare(t.Context(), knows, chat.ToolCall{ID: "c1"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(tool.WithApproval(t.Context(), !tt.want), io.Discard, tt.grant(c)); err != nil || knows.approved != tt.want {
			t.Errorf("%s: %v, %v", name, knows.approved, err)
		}
	}
}

type Grant = grant.Grant

// knowing is a tool that notes whether a person approved its call.
type knowing struct {
	plain
	approved bool
}

func (k *knowing) Prepare(context.Context, json.RawMessage) (tool.Call, error) { return k, nil }

func (k *knowing) Run(ctx context.Context, _ io.Writer) (tool.Result, error) {
	k.approved = tool.IsApproved(ctx)
	return tool.Result{}, nil
}
