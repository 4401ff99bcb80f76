package plan

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/tool"
)

//go:embed question.md
var questionDoc string

// The limits of one call's questions.
const (
	maxQuestions = 8
	maxOptions   = 12
	maxQuestion  = 2000 // bytes of a question, and of an option
	maxHeader    = 80
)

type questionArgs struct {
	Questions []question `json:"questions,omitzero"`
	Question  string     `json:"question,omitzero" also:"prompt text" hidden:"yes" doc:"the question, if there is only one"`
	Options   []choice   `json:"options,omitzero" also:"choices" hidden:"yes" doc:"the answers to choose from, if there is only one question"`
}

type question struct {
	Question    string   `json:"question"`
	Header      string   `json:"header,omitzero" hidden:"yes" doc:"a word or two that stand for it"`
	Options     []choice `json:"options,omitzero" doc:"omit for a free answer"`
	MultiSelect bool     `json:"multiSelect,omitzero" hidden:"yes" doc:"more than one of the options may be chosen"`
	// Validation restricts a typed answer.
	Validation answerRule `json:"validation,omitzero" hidden:"yes" doc:"what a typed answer must be"`
}

// answerRule restricts a typed answer.
type answerRule struct {
	Regex    string `json:"regex,omitzero" doc:"regular expression (RE2) that it must match"`
	Optional bool   `json:"optional,omitzero" doc:"it may be empty"`
}

// choice is one option. Models also write only its label.
type choice struct {
	Label       string `json:"label"`
	Description string `json:"description,omitzero"`
}

// UnmarshalJSON accepts a choice, or its label alone.
func (c *choice) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &c.Label) == nil {
		return nil
	}
	type plain choice
	return json.Unmarshal(data, (*plain)(c))
}

// Question returns the tool by which the model asks the user.
func Question() tool.Tool {
	return tool.Func[questionArgs]{
		Name: "question", Doc: questionDoc,
		Aliases: []tool.Alias{
			{Dialect: tool.Sema, Name: "AskUserQuestion"}, {Dialect: tool.CoAuthor, Name: "askUser"}, {Name: "ask_user"},
			{Name: "ask"},
		},
		Plan: func(_ context.Context, a questionArgs) (tool.Plan, error) {
			qs, err := a.list()
			if err != nil {
				return tool.Plan{}, err
			}
			return tool.Plan{
				Title: qs[0].Question, Effects: []tool.Effect{{Kind: tool.Note, Target: "question"}},
				Preview: display.Text(qs[0].Question),
			}, nil
		},
		Do: func(ctx context.Context, a questionArgs, _ io.Writer) (tool.Result, error) {
			qs, err := a.list()
			if err != nil {
				return tool.Result{}, err
			}
			return ask(ctx, qs)
		},
	}
}

// list returns the questions in either form.
func (a questionArgs) list() ([]question, error) {
	qs := a.Questions
	if strings.TrimSpace(a.Question) != "" {
		qs = append([]question{{Question: a.Question, Options: a.Options}}, qs...)
	}
	switch {
	case len(qs) == 0:
		return nil, errors.New("no question")
	case len(qs) > maxQuestions:
		return nil, message.Errorf("%d questions are too many, the limit is %d", len(qs), maxQuestions)
	}
	for i, q := range qs {
		if err := q.check(); err != nil {
			return nil, message.Errorf("question %d: %w", i+1, err)
		}
	}
	return qs, nil
}

func (q question) check() error {
	switch {
	case strings.TrimSpace(q.Question) == "":
		return errors.New("empty question")
	case len(q.Question) > maxQuestion:
		return message.Errorf("longer than %d bytes", maxQuestion)
	case len(q.Options) == 1:
		return errors.New("one option is not a choice; give two or more, or none")
	case len(q.Validation.Regex) > maxQuestion:
		return message.Errorf("the regular expression is longer than %d bytes", maxQuestion)
	case len(q.Options) > maxOptions:
		return message.Errorf("%d options are too many, the limit is %d", len(q.Options), maxOptions)
	}
	if _, err := regexp.Compile(q.Validation.Regex); err != nil {
		return message.Errorf("validation: %w; use RE2 syntax", err)
	}
	for _, o := range q.Options {
		if strings.TrimSpace(o.Label) == "" || len(o.Label)+len(o.Description) > maxQuestion {
			return errors.New("an option has no label, or is too long")
		}
	}
	return nil
}

type answer struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

type questionResult struct {
	OK        bool     `json:"ok"`
	Answers   []answer `json:"answers,omitempty"`
	Text      string   `json:"text"`
	Cancelled bool     `json:"cancelled,omitempty"`
}

// ask asks the questions and returns the answers to the model.
func ask(ctx context.Context, qs []question) (tool.Result, error) {
	req := uip.Request{Kind: uip.KindComposite, Purpose: uip.PurposeRequestInfo,
		Display: uip.Display{Title: fmt.Sprintf("%d questions", len(qs))}}
	parts := make([]uip.Request, 0, len(qs))
	for _, q := range qs {
		parts = append(parts, q.uiRequest())
	}
	if req.Parts = parts; len(parts) == 1 {
		req = parts[0]
	}
	a, err := uip.InteractorFrom(ctx).Ask(ctx, req)
	switch {
	case err != nil:
		return tool.Result{}, err
	case a.IsUnanswered():
		const text = "No user is available to answer. Decide yourself, and say in your answer what you assumed."
		return tool.Result{Value: questionResult{Text: text}, Failed: true, Summary: "nobody to ask"}, nil
	case a.Dismissed:
		const text = "The user dismissed the questions without answering; no answer was given. Do not ask the same again: continue with what you know, or stop and say what you need."
		return tool.Result{Value: questionResult{Text: text, Cancelled: true}, Failed: true, Summary: "cancelled"}, nil
	}
	r := questionResult{OK: true}
	var all, given []string
	for i, part := range parts {
		one := a
		if len(req.Parts) > 0 {
			one = a.PartAnswer(part)
		}
		words := one.Input // or the labels of the options
		if labels := chosenLabels(part, one); len(labels) > 0 {
			words = strings.Join(labels, ", ")
		} else if legend := optionLegend(part, words); legend != "" {
			words += " (" + legend + ")"
		}
		r.Answers = append(r.Answers, answer{qs[i].Question, words})
		all, given = append(all, fmt.Sprintf("%q = %q", qs[i].Question, words)), append(given, strconv.Quote(words))
	}
	r.Text = "User has answered your questions: " + strings.Join(all, ", ")
	answers := strings.Join(given, ", ") // the user has seen the questions
	return tool.Result{Value: r, Summary: answers, Show: display.Text(answers)}, nil
}

// chosenLabels returns the labels of the options that an answer names. Anything else is the user's own text.
func chosenLabels(q uip.Request, given uip.Response) (labels []string) {
	for _, o := range q.ChosenOptions(given) {
		label, _, _ := strings.Cut(o.Label, " — ")
		if label = cmp.Or(q.Display.Metadata["label"+o.ID], label); !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	return labels
}

// optionLegend lists the options for the numbers at the start of an answer: the model did not number them.
func optionLegend(q uip.Request, words string) string {
	var means []string
	for word := range strings.FieldsSeq(strings.NewReplacer(",", " ", "，", " ", "、", " ").Replace(words)) {
		if n := slices.IndexFunc(q.Options, func(o uip.Option) bool { return o.ID == word }); n >= 0 {
			means = append(means, fmt.Sprintf("%s = %s", word, q.Display.Metadata["label"+word]))
		} else if len(means) == 0 || !slices.Contains([]string{"and", "or", "和", "与", "或"}, strings.ToLower(word)) {
			break
		}
	}
	return strings.Join(means, ", ")
}

func (q question) uiRequest() uip.Request {
	req := uip.Request{
		Kind: uip.KindInput, Purpose: uip.PurposeRequestInfo,
		Display:    uip.Display{Title: q.Question, Metadata: map[string]string{uip.MetaQuotedTitle: "true"}},
		Validation: &uip.Validation{Regex: q.Validation.Regex, Required: !q.Validation.Optional},
	}
	if len(q.Options) > 0 {
		req.Kind, req.Purpose = uip.KindSelect, uip.PurposeChooseStrategy
		if q.MultiSelect {
			req.Display.Description = "choose one or more, such as: 1 2"
		}
	}
	if q.Header != "" && len(q.Header) <= maxHeader && len(q.Options) > 0 {
		req.Display.Metadata["header"] = q.Header
	}
	for i, o := range q.Options {
		id, label := strconv.Itoa(i+1), o.Label
		req.Display.Metadata["label"+id] = o.Label
		if o.Description != "" {
			label += " — " + o.Description
		}
		req.Options = append(req.Options, uip.Option{ID: id, Label: label, Default: i == 0})
	}
	return req
}
