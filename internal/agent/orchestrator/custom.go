package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/toolrun"
	"coder/internal/authored/frontmatter"
	"coder/internal/authored/mention"
	"coder/internal/authored/skills"
	written "coder/internal/authored/usercommand"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/tool"
)

// Library is what the user and the project wrote for use in a session. Every field may be nil.
type Library struct {
	Files       mention.FileResolver // finds files that a message names
	Attachments *Attachments         // may be nil
	// PathExists, which may be nil, reports whether a file or folder with an absolute path exists.
	PathExists func(path string) bool
	Commands   *written.Catalogue
	Skills     *skills.Catalogue
	// AllowsTool reports whether the model may use a tool while a command runs.
	AllowsTool func(c written.Command, tool string) bool
	// Models are the models that a command may choose from.
	Models []string
	// Prompts are commands with text from other programs.
	Prompts PromptSource
	// Resources are what messages can name in other programs.
	Resources *ResourceReader
}

// PromptSource are commands with text from other programs.
type PromptSource interface {
	// List returns the known commands.
	List() []Command
	// Find returns the function that writes a command's text. Find may have to wait for it.
	Find(ctx context.Context, name string) (write func(ctx context.Context, args string) (string, error), ok bool)
}

// ResourceReader are what messages can name in other programs.
type ResourceReader struct {
	Tools tool.Set // the tool that reads them; the model does not have it
	Tool  string   // the tool's name
	// ReadArgs returns the arguments to read name with the tool, and whether name is a resource.
	ReadArgs func(name string) (json.RawMessage, bool)
}

// AllCommands lists the custom commands, then the skills. It omits names that
// already mean something else. They have no Run: they are turns.
func (l *Library) AllCommands(taken []Command) (all []Command) {
	if l == nil {
		return nil
	}
	if l.Commands != nil {
		l.Commands.RefreshOlderThan(commandListMaxAge)
		list, _ := l.Commands.List()
		for _, c := range list {
			all = append(all, Command{Name: c.Name, Args: c.ArgsHint, Help: Title(c.Description), IsCustom: true})
		}
	}
	if l.Skills != nil {
		l.Skills.RefreshOlderThan(commandListMaxAge)
		list, _ := l.Skills.List()
		for _, s := range list {
			all = append(all, Command{Name: s.Name, Help: Title(s.DisplayText()), IsCustom: s.Path != ""})
		}
	}
	if l.Prompts != nil {
		all = append(all, l.Prompts.List()...)
	}
	known := make(map[string]bool)
	for _, c := range taken {
		known[c.Name] = true
	}
	return slices.DeleteFunc(all, func(c Command) bool {
		name := strings.ToLower(c.Name)
		useless := known[name] || !isCommandName(name)
		known[name] = true
		return useless
	})
}

// commandListMaxAge is the maximum age of a shown list of custom
// commands: coder also offers commands written while it runs.
const commandListMaxAge = time.Second

// findCommand finds a custom command, ignoring case. If it finds
// none, it rereads the folders: the command may be new.
func (l *Library) findCommand(name string) (written.Command, bool) {
	if l == nil || l.Commands == nil {
		return written.Command{}, false
	}
	is := func(c written.Command) bool { return strings.EqualFold(c.Name, name) }
	list, _ := l.Commands.List()
	i := slices.IndexFunc(list, is)
	if i < 0 {
		l.Commands.Refresh()
		list, _ = l.Commands.List()
		i = slices.IndexFunc(list, is)
	}
	if i < 0 {
		return written.Command{}, false
	}
	return list[i], true
}

// findSkill finds a skill in the same way.
func (l *Library) findSkill(name string) (skills.Skill, bool) {
	if l == nil || l.Skills == nil {
		return skills.Skill{}, false
	}
	s, ok := l.Skills.Find(name)
	if !ok {
		l.Skills.Refresh()
		s, ok = l.Skills.Find(name)
	}
	return s, ok
}

// qualifiedName returns the full name of the plugin's command or skill with the short
// name name, if it is the only one; name itself if something else has it.
func (l *Library) qualifiedName(name string) string {
	if _, ok := l.findCommand(name); ok {
		return name
	}
	if s, ok := l.findSkill(name); ok && s.Name == name {
		return name
	}
	if l != nil && l.Commands != nil {
		list, _ := l.Commands.List()
		if c, ok := frontmatter.FindUnique(list, func(c written.Command) bool {
			return strings.EqualFold(c.ShortName,
				name)
		}); ok {
			return c.Name
		}
	}
	return name
}

// commandDraft is the result of a command's text and its arguments: a text
// for the model, the files it names, and the turn's special settings.
type commandDraft struct {
	renderText func(context.Context, *turnState) (text string, refs []mention.Ref, err error)
	source     written.Command // the zero Command changes nothing
}

// runCustomCommand runs a custom command, or a skill by its name, as a turn. It reports whether there is one.
func (o *Orchestrator) runCustomCommand(ctx context.Context, rawInput, name, args string, out event.Sink) (text string,
	ok bool, err error) {
	d, ok, err := o.findDraft(ctx, o.Library.qualifiedName(name), args)
	if err != nil {
		st := &turnState{sink: o.RecordingSink(out)}
		failed := event.LocalAdded{Input: rawInput, Output: err.Error(), Failed: true}
		return "", true, cmp.Or(o.emit(ctx, st, ActorUser, failed), err)
	}
	if !ok {
		return "", false, nil
	}
	text, err = o.runDraft(ctx, rawInput, d, out)
	return text, true, err
}

func (o *Orchestrator) findDraft(ctx context.Context, name, args string) (d commandDraft, ok bool, err error) {
	if c, ok := o.Library.findCommand(name); ok {
		c, segments, err := o.Library.Commands.Expand(c.Name, args)
		if err != nil {
			return d, true, &CommandError{err.Error()}
		}
		d.source = c
		d.renderText = func(ctx context.Context, st *turnState) (string, []mention.Ref, error) {
			return o.expandSegments(ctx, st, segments, args)
		}
		return d, true, nil
	}
	if s, ok := o.Library.findSkill(name); ok {
		loaded, err := o.Library.Skills.Load(s.Name, args)
		if err != nil {
			return d, true, &CommandError{err.Error()}
		}
		d.renderText = func(context.Context, *turnState) (string, []mention.Ref, error) {
			return "Follow this skill.\n\n" + loaded.Text(), mention.Find(args), nil
		}
		return d, true, nil
	}
	if o.Library == nil || o.Library.Prompts == nil {
		return d, false, nil
	}
	write, ok := o.Library.Prompts.Find(ctx, name)
	if !ok {
		return d, false, nil
	}
	text, err := write(ctx, args)
	if err != nil {
		return d, true, &CommandError{err.Error()}
	}
	d.renderText = func(context.Context, *turnState) (string, []mention.Ref, error) {
		return text, mention.Find(args), nil // names from the other program are not looked up
	}
	return d, true, nil
}

// runDraft runs a custom command to its answer. The task's record
// has what the user typed; the conversation has the resulting text.
func (o *Orchestrator) runDraft(ctx context.Context, rawInput string, d commandDraft, out event.Sink) (string, error) {
	ctx = contextWithCommand(ctx, d.source)
	st := o.newTurnState(out)
	st.input = rawInput
	err := o.applyHeader(ctx, st, d.source)
	if err == nil {
		err = o.openTask(ctx, st, rawInput)
	}
	if err == nil {
		err = o.recordSystem(ctx, st)
	}
	if err == nil {
		err = o.addDraft(ctx, st, d)
	}
	if err == nil {
		err = o.runLoop(ctx, st)
	}
	return st.finalText, o.closeTurn(ctx, st, err)
}

func (o *Orchestrator) addDraft(ctx context.Context, st *turnState, d commandDraft) error {
	notes, err := o.runPromptHooks(ctx, st, st.input)
	if err != nil {
		return err
	}
	text, refs, err := d.renderText(ctx, st)
	if err != nil {
		return err
	}
	return o.recordText(ctx, st, TextInput(chat.NewUserText(chat.OriginUnknown, text)), refs, notes)
}

// applyHeader applies a command's header to the turn: fewer
// tools, or another model if the command may choose it.
func (o *Orchestrator) applyHeader(ctx context.Context, st *turnState, c written.Command) error {
	if len(c.AllowedTools) > 0 && o.Library.AllowsTool != nil {
		st.overrides.excludesTool = func(tool string) bool { return !o.Library.AllowsTool(c, tool) }
	}
	if slices.Contains(o.Library.Models, c.Model) {
		st.overrides.model = c.Model
	}
	o.freezeSettings(st)
	if c.Model != "" && st.settings.Model != c.Model {
		return o.warn(ctx, st, fmt.Sprintf("/%s asks for the model %s, which is not in provider.models; using %s", c.Name,
			c.Model, st.settings.Model))
	}
	return nil
}

// overrides are a command header's changes to a turn's settings.
type overrides struct {
	excludesTool func(tool string) bool // nil: no change
	model        string
}

// resumeCommand makes a turn that continues in another process subject to its command again.
func (o *Orchestrator) resumeCommand(ctx context.Context, st *turnState, left UnfinishedTurn) (context.Context, error) {
	in, ok := parseInput(left.Input).(slashInput)
	if !ok {
		return ctx, nil
	}
	c, ok := o.Library.findCommand(o.Library.qualifiedName(in.name))
	if !ok {
		return ctx, nil
	}
	if !left.Unvouched {
		ctx = contextWithCommand(ctx, c)
	}
	return ctx, o.applyHeader(ctx, st, c)
}

type commandKey struct{}

func contextWithCommand(ctx context.Context, c written.Command) context.Context {
	return context.WithValue(ctx, commandKey{}, c)
}

// CommandFromContext returns the custom command that a turn runs, if any.
func CommandFromContext(ctx context.Context) (written.Command, bool) {
	c, ok := ctx.Value(commandKey{}).(written.Command)
	return c, ok && c.Name != ""
}

// expandSegments runs the shell commands in a command's text, through the same gate as all others, and
// inserts their output. The files that the command and its arguments name go with the message.
func (o *Orchestrator) expandSegments(ctx context.Context, st *turnState, segments []written.Segment,
	args string) (string, []mention.Ref, error) {
	var (
		calls []chat.ToolCall
		of    []int
		refs  []mention.Ref
	)
	for i, s := range segments {
		switch s.Kind {
		case written.KindShell:
			calls = append(calls, st.settings.shellCall(o.NewID("command"), map[string]string{"command": s.Text}))
			of = append(of, i)
		case written.KindFile:
			refs = append(refs, mention.Parse(s.Text))
		case written.KindText:
		}
	}
	for _, r := range mention.Find(args) {
		if !slices.Contains(refs, r) {
			refs = append(refs, r)
		}
	}
	results := make(map[int]string)
	if len(calls) > 0 {
		err := o.Runner.Run(ctx, toolrun.Round{
			Task: st.task, Actor: ActorUser, Tools: st.settings.Tools, Calls: calls,
			User: o.NewInteractor(st.sink), Sink: st.sink, StopOnReject: st.settings.StopOnReject,
			Deliver: func(_ context.Context, out toolrun.Outcome) error {
				i := of[out.Index]
				results[i] = renderOutput(tool.ParseShellResult(segments[i].Text, out.Result.Text))
				return nil
			},
		})
		if err != nil {
			return "", nil, err
		}
	}
	return written.Join(segments, results), refs, nil
}

// renderOutput returns a command's output for insertion in a text: what it printed, and any error in brackets.
func renderOutput(r tool.ShellResult) string {
	if r.ExitCode < 0 {
		return fmt.Sprintf("[%s was not run: %s]", r.Command, r.Error)
	}
	text := strings.TrimRight(r.Stdout, "\n")
	if r.Stderr != "" {
		text = strings.TrimLeft(text+"\n"+strings.TrimRight(r.Stderr, "\n"), "\n")
	}
	if r.Truncated {
		text += "\n[the output is longer]"
	}
	if r.ExitCode > 0 {
		text += fmt.Sprintf("\n[exit code %d]", r.ExitCode)
	}
	return text
}
