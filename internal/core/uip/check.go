package uip

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// Check returns an error if a is not a valid answer to q.
func Check(q Request, a Response) error {
	if a.Dismissed && q.Purpose != ConfirmRiskyAction && a.ID == q.ID {
		return nil
	}
	if q.Kind == Composite {
		if a.ID != q.ID {
			return fmt.Errorf("answer is for interaction %q, not %q", a.ID, q.ID)
		}
		if a.Option != "" && len(q.Options) > 0 && !q.offers(a.Option) {
			return fmt.Errorf("unknown option %q", a.Option)
		}
		known := make(map[string]bool)
		for i, part := range q.Parts {
			known[part.ID] = true
			if err := checkOne(part, a.Part(part)); err != nil {
				return fmt.Errorf("part %d: %w", i+1, err)
			}
		}
		for _, p := range a.Parts {
			if !known[p.ID] {
				return fmt.Errorf("unknown part %q", p.ID)
			}
		}
		return nil
	}
	return checkOne(q, a)
}

func checkOne(q Request, a Response) error {
	if a.ID != q.ID {
		return fmt.Errorf("answer is for interaction %q, not %q", a.ID, q.ID)
	}
	if a.TaskID != "" && a.TaskID != q.TaskID {
		return fmt.Errorf("answer is for task %q, not %q", a.TaskID, q.TaskID)
	}
	if a.Option != "" && !q.offers(a.Option) {
		return fmt.Errorf("unknown option %q", a.Option)
	}
	if a.Option == Some {
		n, _ := strconv.Atoi(q.Display.Metadata[Hunks]) // 0 if absent
		if _, err := a.Hunks(n); err != nil {
			return err
		}
	}
	if a.Option == "" && (q.Kind == Confirm || q.Kind == Select && a.Input == "") {
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
		return fmt.Errorf("the question's own rule is invalid: %w", err)
	}
	if !re.MatchString(a.Input) {
		if q.Validation.Says != "" {
			return fmt.Errorf("%q is not %s", a.Input, q.Validation.Says)
		}
		return fmt.Errorf("%q does not match %s", a.Input, q.Validation.Regex)
	}
	return nil
}
