package uip

import (
	"errors"
	"regexp"
	"strconv"

	"coder/internal/core/message"
)

// CheckResponse returns an error if a is not a valid answer to q.
func CheckResponse(q Request, a Response) error {
	if a.Dismissed && q.Purpose != PurposeConfirmRiskyAction && a.ID == q.ID {
		return nil
	}
	if q.Kind == KindComposite {
		if a.ID != q.ID {
			return message.Errorf("answer is for interaction %q, not %q", a.ID, q.ID)
		}
		if a.Option != "" && len(q.Options) > 0 && !q.hasOption(a.Option) {
			return message.Errorf("unknown option %q", a.Option)
		}
		known := make(map[string]bool)
		for i, part := range q.Parts {
			known[part.ID] = true
			if err := checkPart(part, a.PartAnswer(part)); err != nil {
				return message.Errorf("part %d: %w", i+1, err)
			}
		}
		for _, p := range a.Parts {
			if !known[p.ID] {
				return message.Errorf("unknown part %q", p.ID)
			}
		}
		return nil
	}
	return checkPart(q, a)
}

func checkPart(q Request, a Response) error {
	if a.ID != q.ID {
		return message.Errorf("answer is for interaction %q, not %q", a.ID, q.ID)
	}
	if a.TaskID != "" && a.TaskID != q.TaskID {
		return message.Errorf("answer is for task %q, not %q", a.TaskID, q.TaskID)
	}
	if a.Option != "" && !q.hasOption(a.Option) {
		return message.Errorf("unknown option %q", a.Option)
	}
	if a.Option == OptionSome {
		n, _ := strconv.Atoi(q.Display.Metadata[MetaHunks]) // 0 if absent
		if _, err := a.Hunks(n); err != nil {
			return err
		}
	}
	if a.Option == "" && (q.Kind == KindConfirm || q.Kind == KindSelect && a.Input == "") {
		return errors.New("an option must be chosen")
	}
	if q.Validation == nil {
		return nil
	}
	if q.Validation.Required && a.Input == "" && a.Option == "" {
		return errors.New("an answer is required")
	}
	if q.Validation.Regex == "" || a.Input == "" {
		return nil
	}
	re, err := regexp.Compile(q.Validation.Regex)
	if err != nil {
		return message.Errorf("the question's own rule is invalid: %w", err)
	}
	if !re.MatchString(a.Input) {
		if q.Validation.Description != "" {
			return message.Errorf("%q is not %s", a.Input, q.Validation.Description)
		}
		return message.Errorf("%q does not match %s", a.Input, q.Validation.Regex)
	}
	return nil
}
