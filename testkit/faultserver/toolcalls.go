package faultserver

import (
	"fmt"
	"net/http"
)

// ManyCalls is how many calls tool-many makes.
const ManyCalls = 40

// toolCalls ask for tools in all the ways that servers do. Once the results
// are there, they give the answer.
var toolCalls = map[string]behaviour{
	"tool":              usual(label{0, "call_a"}),
	"tool-parallel":     usual(label{0, "call_a"}, label{1, "call_b"}),
	"tool-no-index":     usual(label{-1, "call_a"}),
	"tool-no-index-two": usual(label{-1, "call_a"}, label{-1, "call_b"}),
	"tool-no-id":        usual(label{0, ""}),
	"tool-no-id-two":    usual(label{0, ""}, label{1, ""}),
	"tool-same-index":   usual(label{0, "call_a"}, label{0, "call_b"}),
	"tool-id-shared":    usual(label{0, "call_a"}, label{1, "call_a"}),
	"tool-index-gap":    usual(label{1, "call_a"}, label{4, "call_b"}, label{9, "call_c"}),
	"tool-no-label-two": calling(func(t *turn) {
		for range 2 {
			e := t.entry(-1, "")
			t.delta(e.head(e.name, e.args))
		}
	}),
	"tool-id-repeated": calling(func(t *turn) {
		e := t.entry(0, "call_a")
		for _, p := range pieces(e.args) {
			t.delta(e.head(e.name, p))
		}
	}),
	"tool-name-split": calling(func(t *turn) {
		e := t.entry(0, "call_a")
		t.delta(e.head(e.name[:2], ""))
		e.id = ""
		t.delta(e.head(e.name[2:], ""))
		t.delta(e.rest(e.args))
	}),
	"tool-args-object": withArgs(func(t *turn) string { return t.s.opt.Args }),
	"tool-args-null":   withArgs(func(*turn) string { return "null" }),
	"tool-args-empty":  withArgs(func(*turn) string { return `""` }),
	"tool-args-invalid": calling(func(t *turn) {
		t.callChunks(entry{index: 0, id: "call_a", name: t.s.opt.Tool, args: `{"path": a.txt`})
	}),
	"tool-args-truncated": func(t *turn) {
		e := t.entry(0, "call_a")
		t.delta(e.head(e.name, ""))
		t.delta(e.rest(e.args[:len(e.args)/2]))
		t.send(stopped("length"))
	},
	"tool-cut-mid-args": once(func(t *turn) {
		e := t.entry(0, "call_a")
		t.delta(e.head(e.name, ""))
		t.delta(e.rest(e.args[:len(e.args)/2]))
		panic(http.ErrAbortHandler)
	}),
	"tool-interleaved": calling(func(t *turn) {
		es := []entry{t.entry(0, "call_a"), t.entry(1, "call_b"), t.entry(2, "call_c")}
		for _, e := range es {
			t.delta(e.head(e.name, ""))
		}
		for _, p := range pieces(t.s.opt.Args) {
			for _, e := range es {
				t.delta(e.rest(p))
			}
		}
	}),
	"tool-many": calling(func(t *turn) {
		for i := range ManyCalls {
			t.callChunks(t.entry(i, fmt.Sprintf("call_%d", i)))
		}
	}),
	"tool-finish-stop": func(t *turn) {
		if t.afterResults() {
			t.ok()
			return
		}
		t.callChunks(t.entry(0, "call_a"))
		t.send(stopped("stop"))
	},
	"tool-unknown": calling(func(t *turn) {
		t.callChunks(entry{index: 0, id: "call_a", name: "no_such_tool", args: `{}`})
	}),
	"tool-loop": func(t *turn) {
		t.callChunks(t.entry(0, fmt.Sprintf("call_%d", t.n)))
		t.send(stopped("tool_calls"))
	},
	"tool-legacy": calling(func(t *turn) {
		t.send(data(chunk(`{"function_call":{"name":`+encode(t.s.opt.Tool)+`,"arguments":""}}`, "")))
		for _, p := range pieces(t.s.opt.Args) {
			t.send(data(chunk(`{"function_call":{"arguments":`+encode(p)+`}}`, "")))
		}
	}),
	"tool-extra": calling(func(t *turn) {
		t.delta(fmt.Sprintf(`{"index":0,"id":"call_a","type":"function","extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"name":%s,"arguments":%s}}`,
			encode(t.s.opt.Tool), encode(t.s.opt.Args)))
	}),
}

// calling makes calls, and gives the answer once there are results.
func calling(call behaviour) behaviour {
	return func(t *turn) {
		if t.afterResults() {
			t.ok()
			return
		}
		call(t)
		t.send(stopped("tool_calls"))
	}
}

// label is the index and the id of a call; a negative index and an empty id are
// left out.
type label struct {
	index int
	id    string
}

// usual makes the usual call under each of the labels, one after the other.
func usual(labels ...label) behaviour {
	return calling(func(t *turn) {
		for _, l := range labels {
			t.callChunks(t.entry(l.index, l.id))
		}
	})
}

// withArgs makes the usual call with arguments in some other form than a string
// of JSON.
func withArgs(args func(*turn) string) behaviour {
	return calling(func(t *turn) {
		t.delta(fmt.Sprintf(`{"index":0,"id":"call_a","type":"function","function":{"name":%s,"arguments":%s}}`,
			encode(t.s.opt.Tool), args(t)))
	})
}

// entry is a call as it is to be sent; a negative index and an empty id are
// left out.
type entry struct {
	index          int
	id, name, args string
}

// entry is the usual call.
func (t *turn) entry(index int, id string) entry {
	return entry{index, id, t.s.opt.Tool, t.s.opt.Args}
}

// head is the delta that names the call.
func (e entry) head(name, args string) string {
	m := map[string]any{"type": "function", "function": map[string]any{"name": name, "arguments": args}}
	if e.id != "" {
		m["id"] = e.id
	}
	return e.labelled(m)
}

// rest is a delta with more arguments.
func (e entry) rest(args string) string {
	return e.labelled(map[string]any{"function": map[string]any{"arguments": args}})
}

func (e entry) labelled(m map[string]any) string {
	if e.index >= 0 {
		m["index"] = e.index
	}
	return encode(m)
}

// delta sends one delta with one tool call.
func (t *turn) delta(call string) { t.send(data(chunk(`{"tool_calls":[`+call+`]}`, ""))) }

// callChunks sends whole calls, one after the other, in several deltas each.
func (t *turn) callChunks(es ...entry) {
	for _, e := range es {
		t.delta(e.head(e.name, ""))
		for _, p := range pieces(e.args) {
			t.delta(e.rest(p))
		}
	}
}
