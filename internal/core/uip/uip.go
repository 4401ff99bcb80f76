// Package uip is the universal interaction protocol: the agent asks a question and gets an answer,
// without knowing whether a user at a terminal, a browser, an editor, or a fixed rule answers it.
//
// The event log stores each [Request] and [Response], so that a question survives the process that asked
// it.
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
	"coder/internal/core/message"
)

// Kind is the form of the expected answer.
type Kind string

// The four kinds.
const (
	KindSelect    Kind = "Select"    // pick one option of several
	KindConfirm   Kind = "Confirm"   // agree or not
	KindInput     Kind = "Input"     // type free text
	KindComposite Kind = "Composite" // several of the above together
)

// Purpose is the reason for a question.
type Purpose string

// The five purposes.
const (
	PurposeChooseStrategy     Purpose = "choose_strategy"
	PurposeRequestInfo        Purpose = "request_info"
	PurposeConfirmRiskyAction Purpose = "confirm_risky_action"
	PurposeAssignSubtask      Purpose = "assign_subtask"
	PurposeGeneric            Purpose = "generic"
)

// Options of a [KindConfirm] request. Some approves only the hunks of a change named in the input, see
// [Response.Hunks]. The options after it approve and remember: for this session, in this project, for
// every edit below a folder.
const (
	OptionApprove     = "approve"
	OptionSome        = "some"
	OptionSession     = "session"
	OptionAlways      = "always"
	OptionAlwaysBelow = "below"
	OptionReject      = "reject"
)

// Request is one question. CallID, if set, binds the answer to a single tool call; an answer is never
// valid for any other call.
type Request struct {
	ID         string      `json:"interactionId"`
	TaskID     string      `json:"taskId"`
	Author     string      `json:"authorActorId"`
	Kind       Kind        `json:"kind"`
	Purpose    Purpose     `json:"purpose"`
	Display    Display     `json:"display"`
	Options    []Option    `json:"options,omitempty"`
	Validation *Validation `json:"validation,omitempty"`
	// Digest identifies the call that the question is about: its tool, arguments and plan.
	Digest string `json:"callDigest,omitempty"`
	// Parts are the questions of a [KindComposite] request, each with its own id. An option of the whole answers
	// every part that offers it.
	Parts []Request `json:"parts,omitempty"`
	// Args are the arguments of the call that the question is about, for programs that decide by them. The
	// record has them elsewhere.
	Args json.RawMessage `json:"-"`
}

// MetaOnEnter is the metadata key for the option that an empty answer chooses, if any.
const MetaOnEnter = "onEnter"

// Metadata keys of a [KindSelect] request for the options chosen by a yes, by a no, and by any other text,
// which becomes a comment.
const (
	MetaOnYes  = "onYes"
	MetaOnNo   = "onNo"
	MetaOnText = "onWords"
)

// MetaAliasPrefix, followed by an option's id, is the metadata key for another name of that option.
const MetaAliasPrefix = "named."

// MetaQuotedTitle is the metadata key that marks a title as someone's own words, which are shown unchanged.
const MetaQuotedTitle = "quoted"

// The metadata keys of a question that an MCP server asks: the server's name, its form as it sent it
// (mode, url and requested_schema), and in each part the name of the form's field.
const (
	Server = "mcpServer"
	Form   = "mcpForm"
	Field  = "mcpField"
)

// MetaOwnTitle is the metadata key that marks an approval's title as coder's own text, not the name of a
// call.
const MetaOwnTitle = "ownTitle"

// metaRememberKey returns the metadata key for what an option would remember; with each appended, the key for
// its parts.
func metaRememberKey(option string) string {
	if option == OptionAlways {
		return "remembers"
	}
	return "remembers." + option
}

const metaEachSuffix = ".each"

// SetRemembered sets in the display what an option would remember, as a whole and, if there are several
// parts, part by part.
func (r *Request) SetRemembered(option, what string, parts []string) {
	r.Display.Metadata[metaRememberKey(option)] = what
	if len(parts) > 1 {
		r.Display.Metadata[metaRememberKey(option)+metaEachSuffix] = string(jsonx.MustMarshal(parts))
	}
}

// Remembered returns what an option would remember, in parts if they are recorded.
func (r Request) Remembered(option string) (parts []string) {
	what := r.Display.Metadata[metaRememberKey(option)]
	if what == "" || json.Unmarshal([]byte(r.Display.Metadata[metaRememberKey(option)+metaEachSuffix]), &parts) == nil &&
		len(parts) > 0 {
		return parts
	}
	return []string{what}
}

// MetaHunks is the metadata key for the number of hunks in the content, a diff, if the request offers
// [OptionSome]: see [display.SplitHunks].
const MetaHunks = "hunks"

// MetaHasKeys is the metadata key of a question about a call with keys in its arguments. Keys are not saved to
// disk, so only the asking process can run the call.
const MetaHasKeys = "keyed"

// Hints on how to avoid a question, for automatic checks and for the user's own commands.
const (
	TrustHint = "in a trusted folder (/trust yes) checks run without approval"
	BangHint  = "your own command: approval.bang = direct runs it without approval"
)

// CallID returns the id of the tool call that the answer is bound to, or "".
func (r Request) CallID() string { return r.Display.Metadata["toolCallId"] }

// BindToCall returns r bound to a tool call.
func (r Request) BindToCall(id string) Request {
	meta := map[string]string{"toolCallId": id}
	for k, v := range r.Display.Metadata {
		if k != "toolCallId" {
			meta[k] = v
		}
	}
	r.Display.Metadata = meta
	return r
}

// WithIDsOf returns r with the ids of asked, part by part.
func (r Request) WithIDsOf(asked Request) Request {
	r.ID, r.Parts = asked.ID, slices.Clone(r.Parts)
	for i := range min(len(r.Parts), len(asked.Parts)) {
		r.Parts[i] = r.Parts[i].WithIDsOf(asked.Parts[i])
	}
	return r
}

// IsSame reports whether r and other ask the same, apart from ids.
func (r Request) IsSame(other Request) bool {
	return bytes.Equal(r.WithIDsOf(other).Canonical(), other.Canonical())
}

// Canonical returns r in a form that saving and reading does not change.
func (r Request) Canonical() []byte {
	text := jsonx.MustMarshal(r)
	var kept Request
	if json.Unmarshal(text, &kept) != nil {
		return text
	}
	return jsonx.MustMarshal(kept)
}

// Display is what the user sees.
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
	// Rules are the permission rules that this option would remember, if rules can express it, for programs
	// that store their own.
	Rules []string `json:"-"`
}

// Style hints at how an option should look.
type Style string

// The three styles.
const (
	StylePrimary Style = "primary"
	StyleDanger  Style = "danger"
	StylePlain   Style = "default"
)

// Validation restricts typed input.
type Validation struct {
	Regex       string `json:"regex,omitempty"`
	Description string `json:"says,omitempty"` // the same for people, such as "a number"
	Required    bool   `json:"required,omitempty"`
}

// Response answers the Request with the same ID.
type Response struct {
	ID      string `json:"interactionId"`
	TaskID  string `json:"taskId"`
	Author  string `json:"authorActorId"`
	Option  string `json:"selectedOptionId,omitempty"`
	Input   string `json:"inputValue,omitempty"`
	Comment string `json:"comment,omitempty"`
	// Dismissed reports that the user declined to answer. An approval cannot be dismissed: it is given or
	// not.
	Dismissed bool `json:"dismissed,omitempty"`
	// Parts answer the parts of a [KindComposite] request, in any order.
	Parts []Response `json:"parts,omitempty"`
	// AnsweredBy, if set, is the program that answered for the user: one that drives the session.
	AnsweredBy string `json:"via,omitempty"`
	// Args, if set in an approval, replace the arguments of the call, which is then judged again.
	Args json.RawMessage `json:"updatedInput,omitempty"`
	// Stop, in a refusal, ends the turn.
	Stop bool `json:"interrupt,omitempty"`
}

// PartAnswer returns the answer to one part of a composite request: its own, or the one for the whole.
func (a Response) PartAnswer(q Request) Response {
	for _, p := range a.Parts {
		if p.ID == q.ID {
			p.TaskID, p.Author, p.AnsweredBy = q.TaskID, a.Author, a.AnsweredBy
			return p
		}
	}
	option := a.Option
	if option == OptionAlwaysBelow && !q.hasOption(option) {
		option = OptionSession // for what the folder covers
	}
	if (option == OptionSession || option == OptionAlways) && !q.hasOption(option) {
		option = OptionApprove // yes to all, remembered where possible
	}
	return Response{ID: q.ID, TaskID: q.TaskID, Author: a.Author, Option: option, Input: a.Input, Comment: a.Comment,
		AnsweredBy: a.AnsweredBy, Stop: a.Stop}
}

// Hunks returns the hunks named in the input, out of n: numbers from 1 and ranges such as 2-4, without
// duplicates.
func (a Response) Hunks(n int) (all []int, err error) {
	for _, word := range strings.FieldsFunc(a.Input, func(c rune) bool { return strings.ContainsRune(" \t,，、", c) }) {
		low, high, isRange := strings.Cut(word, "-")
		if !isRange {
			high = low
		}
		from, err := strconv.ParseUint(low, 10, 16)
		to, also := strconv.ParseUint(high, 10, 16)
		if err != nil || also != nil || from < 1 || to < from || int(to) > n {
			return nil, message.Errorf("hunk %s is not between 1 and %d", word, n)
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

// Refusal returns the response that refuses r and allows nothing.
func (r Request) Refusal(author, why string) Response {
	a := Response{ID: r.ID, TaskID: r.TaskID, Author: author, Comment: why}
	if r.Kind == KindConfirm || r.Purpose == PurposeConfirmRiskyAction {
		a.Option = OptionReject
	}
	return a
}

// An Interactor answers questions.
//
// Ask blocks until there is an answer or ctx ends. In the latter case it returns ctx.Err() and the
// question is withdrawn. A refusal is a Response, not an error, and so is having nobody to ask: see
// [NoAnswer].
type Interactor interface {
	Ask(ctx context.Context, q Request) (Response, error)
}

// ErrAnswerPending reports that another process may answer later: the question stays open and the work waits on
// record.
var ErrAnswerPending = errors.New("waiting for an answer")

// authorNobody is the author of an answer given because nobody could be asked.
const authorNobody = "nobody"

// NoAnswer returns the response to q if nobody can be asked. It allows nothing.
func NoAnswer(q Request) Response { return q.Refusal(authorNobody, "nobody to ask") }

// IsUnanswered reports whether a is a [NoAnswer] response.
func (a Response) IsUnanswered() bool { return a.Author == authorNobody }

// PendingError is an [ErrAnswerPending] with its question.
type PendingError struct{ Request Request }

func (w *PendingError) Error() string {
	return fmt.Sprintf("%v: %s (%s)", ErrAnswerPending, w.Request.ID, w.Request.Display.Title)
}

// Is reports whether target is ErrAnswerPending.
func (w *PendingError) Is(target error) bool { return target == ErrAnswerPending }

// InteractorFunc adapts a function to an Interactor.
type InteractorFunc func(context.Context, Request) (Response, error)

// Ask calls f.
func (f InteractorFunc) Ask(ctx context.Context, q Request) (Response, error) { return f(ctx, q) }

// NoInteractor is the Interactor of non-interactive runs.
var NoInteractor Interactor = InteractorFunc(func(_ context.Context, q Request) (Response,
	error) {
	return NoAnswer(q), nil
})

// PendingInteractor is the Interactor of runs whose questions are answered later.
var PendingInteractor Interactor = InteractorFunc(func(context.Context, Request) (Response, error) {
	return Response{}, ErrAnswerPending
})

type contextKey struct{}

// WithInteractor returns a ctx whose tools ask the interactor who.
func WithInteractor(ctx context.Context, who Interactor) context.Context {
	return context.WithValue(ctx, contextKey{}, who)
}

// InteractorFrom returns the Interactor for a tool running under ctx, or [NoInteractor].
func InteractorFrom(ctx context.Context) Interactor {
	if who, ok := ctx.Value(contextKey{}).(Interactor); ok {
		return who
	}
	return NoInteractor
}

// HasOwnTitle reports whether the title is coder's own text, to be translated: not the name of a call, nor
// someone's question.
func (r Request) HasOwnTitle() bool {
	return r.Display.Metadata[MetaQuotedTitle] == "" && (r.Purpose != PurposeConfirmRiskyAction ||
		r.Kind == KindComposite || r.Display.Metadata[MetaOwnTitle] != "")
}

func (r Request) hasOption(id string) bool {
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

// MarshalJSON encodes the content with its contentKind: PlainText, Json, Diff or Table.
func (d Display) MarshalJSON() ([]byte, error) {
	w := wireDisplay{Title: d.Title, Description: d.Description, Metadata: d.Metadata}
	switch c := d.Content.(type) {
	case nil:
	case display.Text:
		w.ContentKind, w.Content = "PlainText", jsonx.MustMarshal(string(c))
	case display.Code:
		if c.Lang == "json" && json.Valid([]byte(c.Source)) {
			w.ContentKind, w.Content = "Json", json.RawMessage(c.Source)
			break
		}
		w.ContentKind, w.Content = "PlainText", jsonx.MustMarshal(c.Source)
	case display.Diff:
		w.ContentKind, w.Content = "Diff", jsonx.MustMarshal(c.Unified)
	case display.Table:
		w.ContentKind, w.Content = "Table", jsonx.MustMarshal(wireTable{c.Header, c.Rows})
	}
	return jsonx.Marshal(w)
}

// UnmarshalJSON decodes the output of MarshalJSON. A command becomes text.
func (d *Display) UnmarshalJSON(data []byte) error {
	var w wireDisplay
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	content, err := w.toBlock()
	if err != nil {
		return message.Errorf("content of display: %w", err)
	}
	*d = Display{Title: w.Title, Description: w.Description, Content: content, Metadata: w.Metadata}
	return nil
}

func (w wireDisplay) toBlock() (display.Block, error) {
	if len(w.Content) == 0 {
		return nil, nil
	}
	switch w.ContentKind {
	case "Json":
		return display.Code{Lang: "json", Source: string(w.Content)}, nil
	case "Table":
		var t wireTable
		err := json.Unmarshal(w.Content, &t)
		return display.Table{Header: t.Head, Rows: t.Rows}, err
	}
	var s string
	if err := json.Unmarshal(w.Content, &s); err != nil {
		return nil, err
	}
	if w.ContentKind == "Diff" {
		return display.NewDiff(s), nil
	}
	return display.Text(s), nil
}

// ChosenOptions returns the options that an answer names: its option, or several by number, such as 1 3, 1,3 or
// 1 and 3. An answer that names anything else names none.
func (r Request) ChosenOptions(given Response) (options []Option) {
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
