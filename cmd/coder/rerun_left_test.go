package main

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"coder/internal/agent/rerun"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/model/scripted"
	"coder/internal/policy/rule"
)

// killed is a session whose process was killed after its n-th record.
func killed(t *testing.T, n int, script string) *program {
	t.Helper()
	p := newProgram(t)
	p.file("a.txt", "hi\n")
	alive := p.env
	p.env = append(alive, "CODER_TEST_DIE="+strconv.Itoa(n)+"+")
	if _, stderr, code := p.run("-p", "--mode", "yolo", "--session-id", "s", "--script", p.file("model", script), "go"); code != -1 {
		t.Fatalf("it was not killed but ended with code %d: %s", code, stderr)
	}
	p.env = alive
	return p
}

// cutOffScript has another agent read a file.
const cutOffScript = "call task {\"description\": \"d\", \"prompt\": \"SUB go\", \"subagent_type\": \"explore\"}\n---\n" +
	"to SUB\ncall read {\"path\": \"a.txt\"}\n---\nto SUB\nsay sub end\n---\nsay all done\n"

// comesToTheSame runs the session of a program again, up to its n-th record or, if that is 0,
// to its end.
func (p *program) comesToTheSame(n int) {
	p.t.Helper()
	report, err := p.again(app.Options{}, n)
	if err != nil {
		skipWithoutSandbox(p.t, err)
		p.t.Fatalf("up to record %d: %v", n, err)
	}
	if d := report.Difference; d != nil {
		p.t.Errorf("up to record %d: record %d, %s of %s:\n%s\nis now\n%s", n, d.Record, d.Kind, d.Subject, d.Recorded, d.Rerun)
	}
}

// again runs the session again with these flags, up to its n-th record or, if that is 0, to its end.
func (p *program) again(o app.Options, n int) (*rerun.Report, error) {
	p.t.Helper()
	a := p.app(o)
	var records []event.Record
	for r, err := range a.Store().Logs.Read(p.t.Context(), "s", 0) {
		if err != nil {
			p.t.Fatal(err)
		}
		records = append(records, r)
	}
	if n == 0 {
		n = len(records)
	}
	ctx, stop := context.WithTimeout(p.t.Context(), hangGuard)
	defer stop()
	return a.Verify(ctx, "s", records, n)
}

// TestASubtaskThatWasCutOffComesToTheSameAgain kills the process while another agent
// works: the session is run again up to that, and beyond when it was taken up.
func TestASubtaskThatWasCutOffComesToTheSameAgain(t *testing.T) {
	for _, n := range []int{7, 8, 12, 13} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			p := killed(t, n, cutOffScript)
			p.comesToTheSame(0)
			more := p.file("more", "to SUB\nsay sub end\nrepeat\n---\nsay went on\nrepeat\n")
			if _, stderr, code := p.run("-p", "--mode", "yolo", "-r", "s", "--script", more); code != 0 {
				t.Fatalf("going on ended with %d: %s", code, stderr)
			}
			p.comesToTheSame(0)
			for m := n + 1; m < n+6; m++ { // within what the next process made of it
				p.comesToTheSame(m)
			}
		})
	}
}

// TestACallThatIsDeniedTodayIsNamed, also where the process ended while another agent worked for it.
func TestACallThatIsDeniedTodayIsNamed(t *testing.T) {
	p := killed(t, 12, cutOffScript)
	denied, err := rule.ParseSpecs("task")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{8, 12} {
		report, err := p.again(app.Options{DenyTools: denied}, n)
		if err != nil {
			skipWithoutSandbox(t, err)
			t.Fatalf("up to record %d: %v", n, err)
		}
		if d := report.Difference; d == nil || d.Record != 7 || d.Kind != "decision" || d.Subject != "task" {
			t.Errorf("up to record %d: %+v", n, d)
		}
	}
}

// TestATurnThatWasTakenUpComesToTheSameAgain: what is to become of a turn that was cut
// off is asked, and of a call of which nobody knows whether it was done.
func TestATurnThatWasTakenUpComesToTheSameAgain(t *testing.T) {
	const script = "call write {\"path\": \"c.txt\", \"content\": \"sea\\n\"}\n---\nsay done\n"
	const again = "ask me again" // no answer: the program is left
	for name, answers := range map[string][]string{
		"go on": {"9", supervisor.OptionContinue}, "drop": {"9", supervisor.OptionDiscard}, "words": {"9", "something else"}, "later": {"9", again, supervisor.OptionContinue},
		"skip": {"7", supervisor.OptionContinue, supervisor.OptionSkip}, "retry": {"7", supervisor.OptionContinue, supervisor.OptionRetry}, "late": {"7", supervisor.OptionContinue, again, supervisor.OptionContinue, supervisor.OptionSkip},
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := strconv.Atoi(answers[0])
			p := killed(t, n, script)
			for answers = answers[1:]; len(answers) > 0; {
				answers = p.takeUp(answers, again)
			}
			p.comesToTheSame(0)
			p.comesToTheSame(n + 2)
		})
	}
}

// takeUp goes on with the session as at a terminal, until the program is left. It returns
// the answers that were not given.
func (p *program) takeUp(answers []string, leave string) []string {
	p.t.Helper()
	a := p.app(app.Options{HasUser: true})
	script, err := scripted.Parse("say went on\nrepeat\n")
	if err != nil {
		p.t.Fatal(err)
	}
	a.ScriptedProvider = &scripts{scripted.New(script, scripted.Options{})}
	ctx, left := context.WithCancel(p.t.Context())
	defer left()
	s, err := a.OpenSession(ctx, a.NewSupervisor(uip.InteractorFunc(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		if len(answers) == 0 {
			return uip.NoAnswer(q), nil
		}
		said := answers[0]
		answers = answers[1:]
		a := uip.Response{ID: q.ID, Author: "user", Option: said}
		switch {
		case said == leave:
			left()
			return uip.Response{}, ctx.Err()
		case strings.Contains(said, " "):
			a.Option, a.Input = "", said
		}
		return a, nil
	}), app.Screen{}), app.SessionChoice{ResumeID: "s"}, event.Discard)
	if err != nil {
		p.t.Fatal(err)
	}
	_, words, err := s.AskResume(ctx, event.Discard)
	if err == nil && words != "" {
		_, err = s.RunText(ctx, words, event.Discard)
	}
	if err != nil && ctx.Err() == nil {
		p.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		p.t.Fatal(err)
	}
	return answers
}
