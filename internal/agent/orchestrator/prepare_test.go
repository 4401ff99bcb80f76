package orchestrator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"coder/internal/agent/conversation"
	"coder/internal/authored/mention"
	"coder/internal/authored/skills"
	written "coder/internal/authored/usercommand"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/host/workspace"
	"coder/internal/policy"
	"coder/internal/policy/mode"
	"coder/internal/tool"
	"coder/internal/tool/files"
)

// loreBench is a bench with files, commands and skills of its own.
func loreBench(t *testing.T, script string) *bench {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"a.txt": "alpha\n", "b.txt": "one\ntwo\nthree\n", "secret.txt": "hush\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	b := newBench(t, script)
	set, err := tool.NewSet(append(files.All(ws, files.Options{}), b.tool("bash", tool.Exec), b.tool("todowrite", tool.Note))...)
	if err != nil {
		t.Fatal(err)
	}
	before := b.Settings
	b.Config.Settings = func() Settings { s := before(); s.Tools = set; return s }
	b.Runner.Policy = policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		if len(c.Plan.Effects) > 0 && c.Plan.Effects[0].Target == "secret.txt" {
			return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{{By: "test", Text: "secret"}}}, nil
		}
		return policy.Opinion{Verdict: policy.Allow}, nil
	})
	b.Library = &Library{
		Files: ws,
		Commands: written.New(written.Root{Path: "commands", Files: fstest.MapFS{
			"fix.md":    {Data: []byte("---\ndescription: repairs\nargument-hint: WHAT\n---\nFix $1, see @a.txt. !`make it`")},
			"narrow.md": {Data: []byte("---\nallowed-tools: read\nmodel: big\n---\nlook")},
			"help.md":   {Data: []byte("never used")},
		}}),
		Skills: skills.New(skills.Root{Path: "skills", Files: fstest.MapFS{
			"pdf/SKILL.md": {Data: []byte("---\nname: pdf\ndescription: reads PDFs\n---\nRead $ARGUMENTS, not @a.txt.")},
		}}),
		AllowsTool: func(c written.Command, tool string) bool { return c.AllowedTools[0] == tool },
		Models:     []string{"big"},
	}
	return b
}

const planWords = "Mode: plan. Change nothing."

func lastSaid(t *testing.T, b *bench, input string) event.MessageAdded {
	t.Helper()
	st := b.newTurnState(b)
	said, err := b.composeMessage(t.Context(), st, TextInput(chat.NewUserText(chat.OriginUnknown, input)), mention.Find(input))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.emit(t.Context(), st, ActorUser, said); err != nil {
		t.Fatal(err)
	}
	return said
}

func TestComposeKeepsThePersonsWordsAndPutsTheRestBesideThem(t *testing.T) {
	b := loreBench(t, "")
	said := lastSaid(t, b, " look at @b.txt:2 ")
	if said.Message.Text() != " look at @b.txt:2 " {
		t.Errorf("stored %q", said.Message.Text())
	}
	for _, want := range []string{todosReminder, rulesReminder, "2\ttwo\n"} {
		if !strings.Contains(said.Reminders, want) {
			t.Errorf("the reminders lack %q:\n%s", want, said.Reminders)
		}
	}
	if strings.Contains(said.Reminders, "three") || strings.Contains(said.Reminders, planWords) {
		t.Errorf("too much:\n%s", said.Reminders)
	}
	again := lastSaid(t, b, "and @b.txt:2")
	if strings.Contains(again.Reminders, rulesReminder) || !strings.Contains(again.Reminders, "2\ttwo\n") {
		t.Errorf("the second request has:\n%s", again.Reminders)
	}
	if third := lastSaid(t, b, "nothing named"); third.Reminders != "" || third.ReminderNames != nil {
		t.Errorf("the third request has %q", third.Reminders)
	}
}

func TestRemindersAreKnownFromTheRecord(t *testing.T) {
	b := loreBench(t, "")
	before := b.Settings
	b.Config.Settings = func() Settings { s := before(); s.Mode, s.ModeText = mode.Plan, planWords; return s }
	enter := func(mode string) {
		b.Conversation.Add(event.Record{Event: event.ModeChanged{Mode: mode}})
	}
	enter(mode.Plan)
	count := 0
	said := func() {
		if strings.Contains(lastSaid(t, b, "go").Reminders, planWords) {
			count++
		}
	}
	said()
	said()
	enter(mode.Plan) // the same mode with other permissions
	said()
	if count != 1 {
		t.Errorf("the plan reminder was given %d times, want once", count)
	}
	enter(mode.Build)
	enter(mode.Plan)
	said()
	said()
	if count != 2 {
		t.Errorf("after entering anew it was given %d times in all, want twice", count)
	}
	b.Conversation.Add(event.Record{Event: event.ContextReplaced{Reason: event.ReplaceCompacted, Messages: []chat.Message{chat.TextMessage(chat.User, "a summary")}}})
	if r := lastSaid(t, b, "go").Reminders; r != "" {
		t.Errorf("a summary brought back %q", r)
	}
	b.Conversation.Add(event.Record{Event: event.ContextReplaced{}})
	if r := lastSaid(t, b, "go").Reminders; !strings.Contains(r, rulesReminder) {
		t.Errorf("a conversation that begins anew has %q", r)
	}
}

func TestAnAgentThatWorksForAnotherGetsNothingBesideItsTask(t *testing.T) {
	b := loreBench(t, "")
	b.Subtask = &Subtask{}
	if said := lastSaid(t, b, "see @a.txt"); said.Reminders != "" {
		t.Errorf("it got %q", said.Reminders)
	}
}

func TestWhatNeedsApprovalIsNotReadAndNobodyIsAsked(t *testing.T) {
	b := loreBench(t, "")
	var notices []string
	b.onEach = func(e event.Event) {
		switch e := e.(type) {
		case event.Notice:
			notices = append(notices, e.Text)
		case event.InteractionRequested:
			t.Error("somebody was asked")
		}
	}
	said := lastSaid(t, b, "@secret.txt and @a.txt")
	if strings.Contains(said.Reminders, "hush") || !strings.Contains(said.Reminders, "needs the user's approval") || !strings.Contains(said.Reminders, "alpha") {
		t.Errorf("reminders:\n%s", said.Reminders)
	}
	if len(notices) != 1 || !strings.HasPrefix(notices[0], "@secret.txt: not read") {
		t.Errorf("notices %q", notices)
	}
}

func TestWordsOnTheWayNameFilesToo(t *testing.T) {
	b := loreBench(t, "call todowrite {}\n---\nwant 1\talpha\nsay done")
	words := [][]chat.UserText{{chat.NewUserText(chat.OriginTyped, "and see @a.txt")}}
	b.TakeSteering = func() (now []chat.UserText) {
		if len(words) > 0 {
			now, words = words[0], words[1:]
		}
		return now
	}
	if _, err := b.RunText(t.Context(), "begin", b); err != nil {
		t.Fatal(err)
	}
}

func TestAnInterruptedReadingEndsTheTurn(t *testing.T) {
	b := loreBench(t, "say never")
	ctx, cancel := context.WithCancel(t.Context())
	b.onEach = func(e event.Event) {
		if _, ok := e.(event.ToolStarted); ok {
			cancel()
		}
	}
	if _, err := b.RunText(ctx, "see @a.txt", b); !errors.Is(err, context.Canceled) {
		t.Errorf("the turn ended with %v", err)
	}
	b.wellFormed()
}

func TestACommandBecomesARequest(t *testing.T) {
	b := loreBench(t, "want Fix it, see @a.txt. \nwant 1\talpha\nwant 2\ttwo\nsay fixed")
	got, err := b.RunText(t.Context(), "/FIX it @b.txt", b)
	if err != nil || got.Text != "fixed" {
		t.Fatalf("%+v, %v", got, err)
	}
	if text := b.Conversation.Messages()[0].Text(); strings.Contains(text, "!`") {
		t.Errorf("the command in it was not run: %q", text)
	}
	if n := strings.Count(b.log.String(), "ToolCallRequested"); n != 3 {
		t.Errorf("%d calls, want the command and two files", n)
	}
}

func TestASkillByItsNameBecomesARequest(t *testing.T) {
	b := loreBench(t, "want <skill name=\"pdf\">\nwant Read x.pdf, not @a.txt.\nsay read")
	got, err := b.RunText(t.Context(), "/pdf x.pdf", b)
	if err != nil || got.Text != "read" {
		t.Fatalf("%+v, %v", got, err)
	}
	if strings.Contains(b.Conversation.Messages()[0].Text(), "alpha") {
		t.Error("a file that the skill's own text names was read")
	}
}

func TestTheHeaderOfACommandBindsItsTurnAndOnlyThat(t *testing.T) {
	b := loreBench(t, "say one\n---\nsay two")
	var during []string
	judge := b.Runner.Policy
	b.Runner.Policy = policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		if cmd, ok := CommandFromContext(ctx); ok {
			during = append(during, cmd.Name)
		}
		return judge.Judge(ctx, c)
	})
	for _, in := range []string{"/narrow @a.txt", "@a.txt"} {
		if _, err := b.RunText(t.Context(), in, b); err != nil {
			t.Fatal(err)
		}
	}
	seen := b.model.Requests()
	if len(seen[0].Tools) != 1 || seen[0].Tools[0].Name != "read" || seen[0].Model != "big" {
		t.Errorf("the command's turn had %d tools and model %s", len(seen[0].Tools), seen[0].Model)
	}
	if len(seen[1].Tools) != 8 || seen[1].Model != "m" {
		t.Errorf("the next turn had %d tools and model %s", len(seen[1].Tools), seen[1].Model)
	}
	if len(during) != 2 || during[0] != "narrow" { // looked at, then run
		t.Errorf("judged under %q", during)
	}
}

func TestATurnOfACommandGoesOnUnderIt(t *testing.T) {
	b := loreBench(t, "say done")
	left := UnfinishedTurn{Task: "t1", Input: "/narrow", Started: true, InputRecorded: true}
	if left.IsCommand() || !(UnfinishedTurn{Input: "/narrow"}).IsCommand() || !(UnfinishedTurn{Input: "!ls", InputRecorded: true}).IsCommand() {
		t.Error("what may go on is not what may not")
	}
	b.Conversation.Add(event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.User, "look")}})
	if _, err := b.ContinueTurn(t.Context(), left, b); err != nil {
		t.Fatal(err)
	}
	if seen := b.model.Requests(); len(seen[0].Tools) != 1 {
		t.Errorf("it went on with %d tools", len(seen[0].Tools))
	}
}

func TestTheProgramsOwnCommandsComeFirst(t *testing.T) {
	b := loreBench(t, "")
	b.Config.Commands = []Command{{Name: "help", Run: func(context.Context, *CommandCall) (Outcome, error) { return Outcome{Text: "own"}, nil }}}
	got, err := b.RunText(t.Context(), "/help", b)
	if err != nil || got.Text != "own" || len(b.model.Requests()) != 0 {
		t.Fatalf("%q, %v", got.Text, err)
	}
	var names []string
	for _, c := range b.Library.AllCommands(b.Config.Commands) {
		names = append(names, c.Name+" "+c.Args)
	}
	if got := strings.Join(names, ","); got != "fix WHAT,narrow ,create-skill ,pdf " {
		t.Errorf("listed %q", got)
	}
	var none *Library
	if none.AllCommands(nil) != nil {
		t.Error("nothing lists something")
	}
	var unknown *CommandError
	if _, err := b.RunText(t.Context(), "/nothing", b); !errors.As(err, &unknown) {
		t.Errorf("an unknown command: %v", err)
	}
}

func TestConversationForgetsNoReminderAcrossAResume(t *testing.T) {
	const planReminder, buildReminder = event.ModeReminderPrefix + mode.Plan, event.ModeReminderPrefix + mode.Build
	var talk conversation.Conversation
	talk.Add(event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.User, "x"), ReminderNames: []string{startReminder, planReminder}}})
	if !talk.HasReminder(startReminder) || !talk.HasReminder(planReminder) || talk.HasReminder("other") {
		t.Error("the record says otherwise")
	}
	talk.Add(event.Record{Event: event.ModeChanged{Mode: mode.Build}})
	if !talk.HasReminder(startReminder) || talk.HasReminder(planReminder) {
		t.Error("leaving a mode forgets what was said of it, and nothing else")
	}
	talk.Add(event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.User, "y"), ReminderNames: []string{planReminder}}})
	talk.Add(event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.User, "z"), ReminderNames: []string{buildReminder}}})
	if talk.HasReminder(planReminder) || !talk.HasReminder(buildReminder) {
		t.Error("the newest words about a mode do not stand for those before")
	}
}

// A prompt is in Chinese if most of it is: a word that it quotes, or names of code, do not count.
func TestTheLanguageOfAPrompt(t *testing.T) {
	for text, want := range map[string]bool{
		"Please rename the label 内容 in the parser, then add tests": false,
		"把 parseConfig 改名为 loadConfig，并更新测试":                       true,
		"":        false,
		"fix it":  false,
		"修复 main": true,
	} {
		if got := isChinese(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
