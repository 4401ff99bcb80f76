// Package uip is the universal interaction protocol: how the agent puts a
// question to whoever is in charge and gets an answer, without knowing whether
// that is a person at a terminal, a browser, an editor, or a fixed rule.
//
// A [Request] and its [Response] are also what the event log keeps, so that a
// question outlives the process that asked it.
package uip

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/jsonx"
)

// Kind is the shape of the answer wanted.
type Kind string

// The four shapes.
const (
	Select    Kind = "Select"    // pick one option of several
	Confirm   Kind = "Confirm"   // agree or not
	Input     Kind = "Input"     // type free text
	Composite Kind = "Composite" // several of the above at once
)

// Purpose is why the question is asked.
type Purpose string

// The five purposes.
const (
	ChooseStrategy     Purpose = "choose_strategy"
	RequestInfo        Purpose = "request_info"
	ConfirmRiskyAction Purpose = "confirm_risky_action"
	AssignSubtask      Purpose = "assign_subtask"
	Generic            Purpose = "generic"
)

// Options of a [Confirm] request. Some is yes to those hunks of a change that the
// input names, see [Response.Hunks]. Those after it are yes, and remembered: for
// this session, in this project, for every edit below a folder.
const (
	Approve = "approve"
	Some    = "some"
	Session = "session"
	Always  = "always"
	Below   = "below"
	Reject  = "reject"
)

// Request is one question. CallID, when set, ties the answer to a single tool
// call; an answer is never valid for any other call.
type Request struct {
	ID         string      `json:"interactionId"`
	TaskID     string      `json:"taskId"`
	Author     string      `json:"authorActorId"`
	Kind       Kind        `json:"kind"`
	Purpose    Purpose     `json:"purpose"`
	Display    Display     `json:"display"`
	Options    []Option    `json:"options,omitempty"`
	Validation *Validation `json:"validation,omitempty"`
	// Digest, where the question is about a call, tells the call apart from any
	// other: its tool, its arguments and what it was found to do.
	Digest string `json:"callDigest,omitempty"`
	// Parts are the questions of a [Composite] request, each with an id of its
	// own. An option of the whole answers every part that offers it.
	Parts []Request `json:"parts,omitempty"`
	// Args, where the question is about a call, are its arguments as its tool
	// takes them, for programs that decide by them. They are on record elsewhere.
	Args json.RawMessage `json:"-"`
}

// OnEnter is where the metadata of a display name the option that an empty
// answer takes, if any does.
const OnEnter = "onEnter"

// Where the metadata of a display of a [Select] request name the options that yes, that
// no, and that any words take which name none, these as a comment.
const (
	OnYes   = "onYes"
	OnNo    = "onNo"
	OnWords = "onWords"
)

// Named, followed by the id of an option, is where the metadata of a display have
// another name by which people may choose it.
const Named = "named."

// Quoted is where the metadata of a display say that its title is somebody's own words,
// which are shown as they are.
const Quoted = "quoted"

// OwnTitle is where they say that the title of an approval is words of the program's own,
// and not what a call is called.
const OwnTitle = "ownTitle"

// remembers is where the metadata of a display say what an option would remember, and
// with each behind it, part by part.
func remembers(option string) string {
	if option == Always {
		return "remembers"
	}
	return "remembers." + option
}

const each = ".each"

// Remember says in the display what an option would remember, in whole and, if there are
// several, part by part.
func (r *Request) Remember(option, what string, parts []string) {
	r.Display.Metadata[remembers(option)] = what
	if len(parts) > 1 {
		r.Display.Metadata[remembers(option)+each] = string(jsonx.Must(parts))
	}
}

// Remembered is what an option would remember, part by part as far as that is told.
func (r Request) Remembered(option string) (parts []string) {
	what := r.Display.Metadata[remembers(option)]
	if what == "" || json.Unmarshal([]byte(r.Display.Metadata[remembers(option)+each]), &parts) == nil && len(parts) > 0 {
		return parts
	}
	return []string{what}
}

// Hunks is where the metadata of a display says how many hunks its content, a diff,
// has, if the request offers [Some]: see [display.Hunks].
const Hunks = "hunks"

// Keyed is in the metadata of a question about a call with keys in its arguments. They
// are not kept on disk, so only the process that asks can run it.
const Keyed = "keyed"

// CallID is the tool call the answer is bound to, or "".
func (r Request) CallID() string { return r.Display.Metadata["toolCallId"] }

// ForCall returns r bound to a tool call.
func (r Request) ForCall(id string) Request {
	meta := map[string]string{"toolCallId": id}
	for k, v := range r.Display.Metadata {
		if k != "toolCallId" {
			meta[k] = v
		}
	}
	r.Display.Metadata = meta
	return r
}

// Under returns r with the ids of asked, part by part.
func (r Request) Under(asked Request) Request {
	r.ID, r.Parts = asked.ID, slices.Clone(r.Parts)
	for i := range min(len(r.Parts), len(asked.Parts)) {
		r.Parts[i] = r.Parts[i].Under(asked.Parts[i])
	}
	return r
}

// Same reports whether r asks what other asks: all but the ids is the same.
func (r Request) Same(other Request) bool {
	return bytes.Equal(r.Under(other).Canonical(), other.Canonical())
}

// Canonical is r in the one form that it also has after it was kept and read
// again.
func (r Request) Canonical() []byte {
	text := jsonx.Must(r)
	var kept Request
	if json.Unmarshal(text, &kept) != nil {
		return text
	}
	return jsonx.Must(kept)
}

// Display is what the person sees.
type Display struct {
	Title       string
	Description string
	Content     display.Block
	Metadata    map[string]string
}

// Option is one way to answer.
type Option struct {
	ID      string `json:"id"`
	Label   string `json:"label"`
	Style   Style  `json:"style,omitempty"`
	Default bool   `json:"isDefault,omitempty"`
	// Rules, where the answer is remembered and rules can say how far, are those
	// rules as permissions are written, for programs that keep their own.
	Rules []string `json:"-"`
}

// Style hints at how an option should look.
type Style string

// The three styles.
const (
	Primary Style = "primary"
	Danger  Style = "danger"
	Plain   Style = "default"
)

// Validation restricts typed input.
type Validation struct {
	Regex    string `json:"regex,omitempty"`
	Says     string `json:"says,omitempty"` // the same for people, such as "a number"
	Required bool   `json:"required,omitempty"`
}

// Response answers the Request with the same ID.
type Response struct {
	ID      string `json:"interactionId"`
	TaskID  string `json:"taskId"`
	Author  string `json:"authorActorId"`
	Option  string `json:"selectedOptionId,omitempty"`
	Input   string `json:"inputValue,omitempty"`
	Comment string `json:"comment,omitempty"`
	// Dismissed says that the person did not want to answer at all. An approval
	// cannot be dismissed: it is given or not.
	Dismissed bool `json:"dismissed,omitempty"`
	// Parts answer the parts of a [Composite] request, in any order.
	Parts []Response `json:"parts,omitempty"`
	// Via, if set, is what brought the answer in the person's place: a program
	// that they let drive the session.
	Via string `json:"via,omitempty"`
	// Args, with a yes to a call, are other arguments for it. What is called then
	// is judged anew.
	Args json.RawMessage `json:"updatedInput,omitempty"`
	// Stop, with a no, ends the turn.
	Stop bool `json:"interrupt,omitempty"`
}

// Part is the answer to one part of a composite request: its own, or that
// given for all.
func (a Response) Part(q Request) Response {
	for _, p := range a.Parts {
		if p.ID == q.ID {
			p.TaskID, p.Author, p.Via = q.TaskID, a.Author, a.Via
			return p
		}
	}
	option := a.Option
	if option == Below && !q.offers(option) {
		option = Session // as far as the folder reaches
	}
	if (option == Session || option == Always) && !q.offers(option) {
		option = Approve // yes to all, remembered where it can be
	}
	return Response{ID: q.ID, TaskID: q.TaskID, Author: a.Author, Option: option, Input: a.Input, Comment: a.Comment, Via: a.Via, Stop: a.Stop}
}

// Hunks are those that the input names, of the n that there are: numbers from 1 and
// ranges such as 2-4, each hunk once.
func (a Response) Hunks(n int) (all []int, err error) {
	for _, word := range strings.FieldsFunc(a.Input, func(c rune) bool { return strings.ContainsRune(" \t,，、", c) }) {
		low, high, isRange := strings.Cut(word, "-")
		if !isRange {
			high = low
		}
		from, err := strconv.ParseUint(low, 10, 16)
		to, also := strconv.ParseUint(high, 10, 16)
		if err != nil || also != nil || from < 1 || to < from || int(to) > n {
			return nil, fmt.Errorf("hunk %s is not between 1 and %d", word, n)
		}
		for one := int(from); one <= int(to); one++ {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("enter hunk numbers, such as 1 3")
	}
	slices.Sort(all)
	return all, nil
}

// RefusedBy is the response that turns r down, and allows nothing.
func (r Request) RefusedBy(author, why string) Response {
	a := Response{ID: r.ID, TaskID: r.TaskID, Author: author, Comment: why}
	if r.Kind == Confirm || r.Purpose == ConfirmRiskyAction {
		a.Option = Reject
	}
	return a
}

// An Interactor answers questions.
//
// Ask blocks until there is an answer or ctx ends, in which case it returns
// ctx.Err() and the question is withdrawn. Being told "no" is a Response, not
// an error, and so is that there is nobody to ask: see [NoAnswer].
type Interactor interface {
	Ask(ctx context.Context, q Request) (Response, error)
}

// ErrParked reports that the answer may come later, from another process: the
// question stays open and the work waits on record.
var ErrParked = errors.New("waiting for an answer")

// nobody is the author of an answer given because there was no one to ask.
const nobody = "nobody"

// NoAnswer is the response to q where there is nobody to ask. What would have to
// be allowed is not.
func NoAnswer(q Request) Response { return q.RefusedBy(nobody, "nobody to ask") }

// Unanswered reports whether a is such a response.
func (a Response) Unanswered() bool { return a.Author == nobody }

// Waiting is the [ErrParked] of one question.
type Waiting struct{ Request Request }

func (w *Waiting) Error() string {
	return fmt.Sprintf("%v: %s (%s)", ErrParked, w.Request.ID, w.Request.Display.Title)
}

// Is reports that a waiting question is parked.
func (w *Waiting) Is(target error) bool { return target == ErrParked }

// Func makes an Interactor of a function.
type Func func(context.Context, Request) (Response, error)

// Ask calls f.
func (f Func) Ask(ctx context.Context, q Request) (Response, error) { return f(ctx, q) }

// Nobody is the Interactor for runs without a person.
var Nobody Interactor = Func(func(_ context.Context, q Request) (Response, error) { return NoAnswer(q), nil })

// Parked is the Interactor for runs whose questions are answered later.
var Parked Interactor = Func(func(context.Context, Request) (Response, error) {
	return Response{}, ErrParked
})

type contextKey struct{}

// With gives a tool that runs under ctx someone to ask.
func With(ctx context.Context, who Interactor) context.Context {
	return context.WithValue(ctx, contextKey{}, who)
}

// From is whom a tool running under ctx may ask; [Nobody] if none was given.
func From(ctx context.Context) Interactor {
	if who, ok := ctx.Value(contextKey{}).(Interactor); ok {
		return who
	}
	return Nobody
}

// Worded reports whether the title is words of the program's own, to be said in the
// person's language: not what a call is called, nor what somebody asks.
func (r Request) Worded() bool {
	return r.Display.Metadata[Quoted] == "" && (r.Purpose != ConfirmRiskyAction || r.Kind == Composite || r.Display.Metadata[OwnTitle] != "")
}

func (r Request) offers(id string) bool {
	return slices.ContainsFunc(r.Options, func(o Option) bool { return o.ID == id })
}

type wireDisplay struct {
	Title       string            `json:"title"`
	Description string            `json:"description,omitempty"`
	Content     json.RawMessage   `json:"content,omitempty"`
	ContentKind string            `json:"contentKind,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

type wireTable struct {
	Head []display.Cell   `json:"head"`
	Rows [][]display.Cell `json:"rows"`
}

// MarshalJSON writes the content with its contentKind: PlainText, Json, Diff
// or Table.
func (d Display) MarshalJSON() ([]byte, error) {
	w := wireDisplay{Title: d.Title, Description: d.Description, Metadata: d.Metadata}
	switch c := d.Content.(type) {
	case nil:
	case display.Text:
		w.ContentKind, w.Content = "PlainText", jsonx.Must(string(c))
	case display.Code:
		if c.Lang == "json" && json.Valid([]byte(c.Source)) {
			w.ContentKind, w.Content = "Json", json.RawMessage(c.Source)
			break
		}
		w.ContentKind, w.Content = "PlainText", jsonx.Must(c.Source)
	case display.Diff:
		w.ContentKind, w.Content = "Diff", jsonx.Must(c.Unified)
	case display.Table:
		w.ContentKind, w.Content = "Table", jsonx.Must(wireTable{c.Head, c.Rows})
	}
	return jsonx.JSON(w)
}

// UnmarshalJSON reads what MarshalJSON wrote. A command comes back as text.
func (d *Display) UnmarshalJSON(data []byte) error {
	var w wireDisplay
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	content, err := w.block()
	if err != nil {
		return fmt.Errorf("content of display: %w", err)
	}
	*d = Display{Title: w.Title, Description: w.Description, Content: content, Metadata: w.Metadata}
	return nil
}

func (w wireDisplay) block() (display.Block, error) {
	if len(w.Content) == 0 {
		return nil, nil
	}
	switch w.ContentKind {
	case "Json":
		return display.Code{Lang: "json", Source: string(w.Content)}, nil
	case "Table":
		var t wireTable
		err := json.Unmarshal(w.Content, &t)
		return display.Table{Head: t.Head, Rows: t.Rows}, err
	}
	var s string
	if err := json.Unmarshal(w.Content, &s); err != nil {
		return nil, err
	}
	if w.ContentKind == "Diff" {
		return display.Counted(s), nil
	}
	return display.Text(s), nil
}

// Chosen are the options that an answer names: the one it takes, or several by their
// numbers, such as 1 3, 1,3 or 1 and 3. An answer that names anything else names none.
func (r Request) Chosen(given Response) (options []Option) {
	ids := []string{given.Option}
	if given.Option == "" {
		ids = strings.FieldsFunc(given.Input, func(c rune) bool { return strings.ContainsRune(" ,，、;；&+和与\t", c) })
	}
	for _, id := range ids {
		if strings.EqualFold(id, "and") {
			continue
		}
		n := slices.IndexFunc(r.Options, func(o Option) bool { return o.ID == id })
		if n < 0 {
			return nil
		}
		options = append(options, r.Options[n])
	}
	return options
}
