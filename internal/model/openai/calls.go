package openai

import (
	"bytes"
	"slices"
	"strings"

	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
)

// callCollector sorts the pieces of tool calls into calls numbered from 0. Servers label the pieces by index,
// by id, by both, by neither, and wrongly. Only this type decides which pieces belong together.
type callCollector struct {
	list      []*call
	slots     map[int]int // from the server's index to ours
	lastGrown int         // the call that grew last
}

type call struct {
	id, name  string
	args      []byte
	joiner    jsonscan.Joiner
	announced bool // id and name have been passed on
}

// callPiece is the part of one delta about one call.
type callPiece struct {
	index    int
	hasIndex bool
	id, name string
	args     []byte // a JSON value, or nil
	extra    []byte // a JSON value, or nil
}

func readPiece(raw []byte) callPiece {
	var p callPiece
	for m := jsonscan.Members(raw); m.Next(); {
		switch string(m.Key) {
		case "index":
			p.index, p.hasIndex = jsonscan.Int(m.Val)
		case "id":
			p.id = jsonscan.String(m.Val)
		case "function":
			p.readFunction(m.Val)
		case "extra_content":
			p.extra = m.Val
		}
	}
	return p
}

func (p *callPiece) readFunction(raw []byte) {
	for m := jsonscan.Members(raw); m.Next(); {
		switch string(m.Key) {
		case "name":
			p.name = jsonscan.String(m.Val)
		case "arguments":
			p.args = m.Val
		}
	}
}

// add adds the n'th piece of a delta and returns what to pass on.
func (c *callCollector) add(p callPiece, n int) (provider.CallDelta, bool) {
	if p.id == "" && p.name == "" && p.extra == nil && (p.args == nil || string(p.args) == `""`) {
		return provider.CallDelta{}, false
	}
	at := c.find(p, n)
	if at >= 0 { // some servers repeat the whole call at the end
		k := c.list[at]
		again := bytes.Equal(p.args, k.args) || jsonscan.IsString(p.args) && jsonscan.String(p.args) == string(k.args)
		if again && p.id != "" && p.id == k.id && p.name == k.name && len(k.args) > 0 {
			return provider.CallDelta{}, false
		}
	}
	if at < 0 || c.list[at].startsNewCall(p) {
		at = len(c.list)
		c.list = append(c.list, new(call))
	}
	c.lastGrown = at
	if p.hasIndex {
		if c.slots == nil {
			c.slots = make(map[int]int)
		}
		c.slots[p.index] = at
	}
	return c.list[at].appendPiece(p, at)
}

// find returns the index of the call that p's labels identify, or -1.
func (c *callCollector) find(p callPiece, n int) int {
	byID := -1
	if p.id != "" {
		byID = slices.IndexFunc(c.list, func(k *call) bool { return k.id == p.id })
	}
	if p.hasIndex {
		if at, ok := c.slots[p.index]; ok {
			return at
		}
		switch {
		case p.name != "":
			return -1
		case p.id != "":
			return byID
		}
		return len(c.list) - 1 // an unnamed continuation under an unexpected index
	}
	switch {
	case p.id != "":
		return byID
	case p.name != "" && n > 0:
		return -1 // two parallel calls without labels
	case len(c.list) == 0:
		return -1
	}
	return c.lastGrown
}

// startsNewCall reports whether p begins a new call although it has the labels of k.
func (k *call) startsNewCall(p callPiece) bool {
	object := len(p.args) > 0 && (p.args[0] == '{' || // an object, or a string that starts one
		jsonscan.IsString(p.args) && bytes.HasPrefix(bytes.TrimLeft(p.args[1:], whiteSpace), []byte("{")))
	switch {
	case p.id != "" && k.id != "" && p.id != k.id:
		return true
	case p.name == "" || len(k.args) == 0:
		return false
	case p.name != k.name && !p.hasIndex && p.id == "":
		return true
	case p.name == k.name && !object:
		return false
	}
	return k.args[len(k.args)-1] == '}' && jsonscan.IsComplete(k.args)
}

// appendPiece adds p to k, the call at index at. It holds the name back
// until the arguments begin, because the name may come in pieces.
func (k *call) appendPiece(p callPiece, at int) (provider.CallDelta, bool) {
	d := provider.CallDelta{Index: at, Extra: bytes.ToValidUTF8(p.extra, []byte("\uFFFD"))}
	if k.id == "" && p.id != "" {
		k.id = p.id
		if k.announced {
			d.ID = p.id
		}
	}
	switch {
	case p.name == k.name || p.name == "":
	case !k.announced:
		k.name += p.name
	case k.name == "":
		k.name, d.Name = p.name, p.name
	}
	if jsonscan.IsString(p.args) {
		d.Args = k.joiner.AddString(p.args)
	} else { // raw
		d.Args = strings.ToValidUTF8(string(p.args), "\uFFFD")
	}
	k.args = append(k.args, d.Args...)
	if d.Args != "" && !k.announced {
		k.announced, d.ID, d.Name = true, k.id, k.name
	}
	return d, d.ID != "" || d.Name != "" || d.Args != "" || d.Extra != nil
}
