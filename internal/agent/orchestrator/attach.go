package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/agent/toolrun"
	"coder/internal/authored/mention"
	"coder/internal/core/chat"
	"coder/internal/core/jsonx"
	"coder/internal/tool"
)

// Attachments reads the files that the user named in a message.
type Attachments struct {
	Set     tool.Set      // the tools for files in the workspace, and Tool
	Tool    string        // reads a file outside the workspace; the model does not have it
	Outside mention.Files // finds files outside the workspace
	// Blind returns why the model cannot see pictures, or nil if it can or might.
	Blind func() error
}

// AttachError reports a file that could not be attached to a message. The message was not sent.
type AttachError struct{ Failed string }

func (e *AttachError) Error() string { return "nothing was sent: " + e.Failed }

// naming is a name in a message and how coder reads it.
type naming struct {
	*mention.Reading
	own     bool // the user typed it
	outside bool // it is outside the workspace
}

// readNamed reads the files that a message names, as the user's own calls through the same gate as
// all others. A name that the user typed may be outside the workspace; the user is asked if policy
// requires it, and if the file is unreadable, nothing is sent. A name in pasted or piped text is
// not read if that needs approval: the message says so, and the model may ask for the file.
func (o *Orchestrator) readNamed(ctx context.Context, st *turnState, said Said, refs []mention.Ref) (text string, pictures []chat.Part, err error) {
	if err := o.blind(said); err != nil {
		return "", nil, err
	}
	if len(refs) == 0 || o.Library.Files == nil {
		return "", nil, nil
	}
	targets, left := mention.Resolve(o.Library.Files, refs)
	readings, set := make([]mention.Reading, len(targets)), st.set.Tools
	var typed []mention.Ref
	if o.Library.Attach != nil {
		typed, set = mention.Find(said.Own()), o.Library.Attach.Set
	}
	var (
		calls []chat.ToolCall
		named []naming
		of    []*mention.Reading // the reading for each call
	)
	for i, t := range targets {
		readings[i].Target = t
		n := naming{Reading: &readings[i], own: slices.Contains(typed, t.Named)}
		call, ok := o.callFor(ctx, set, &n)
		named = append(named, n)
		if ok {
			calls, of = append(calls, call), append(of, n.Reading)
		}
	}
	if err := unattached(said, named); err != nil {
		return "", nil, err
	}
	if err := o.tellUnread(ctx, st, readings); err != nil || len(calls) == 0 {
		return mention.Write(readings, left), nil, err
	}
	if pictures, err = o.runNamed(ctx, st, set, calls, of); err != nil {
		return "", nil, err
	}
	return mention.Write(readings, left), pictures, unattached(said, named)
}

// callFor returns the call that reads n. Without a call, n says why.
func (o *Orchestrator) callFor(ctx context.Context, set tool.Set, n *naming) (call chat.ToolCall, ok bool) {
	if n.Note != "" && n.own {
		n.findOutside(o.Library.Attach.Outside)
	}
	if n.Note != "" {
		return call, false
	}
	args, class := map[string]any{"path": n.Path}, tool.ReadsFile
	switch {
	case n.Dir:
		class = tool.ListsFolder
	case n.From > 0:
		args["offset"], args["limit"] = n.From, min(n.To-n.From+1, mention.MaxLines)
	}
	name, _ := set.First(class)
	if n.outside {
		name = o.Library.Attach.Tool
	}
	call = chat.ToolCall{ID: o.NewID("mention"), Name: name, Args: jsonx.Must(args)}
	if err := o.Runner.Unasked(ctx, set, call); err != nil && !(n.own && errors.Is(err, toolrun.ErrNeedsApproval)) {
		n.Note = notRead(err)
		return call, false
	}
	return call, true
}

// findOutside looks for a name outside the workspace.
func (n *naming) findOutside(files mention.Files) {
	found, _ := mention.Resolve(files, []mention.Ref{n.Named})
	if len(found) == 0 || files == nil {
		return
	}
	at, err := files.Locate(found[0].Path)
	if err != nil { // in the workspace
		return
	}
	n.Target, n.outside = found[0], true
	switch {
	case n.Dir:
		n.Note = "not read: a folder outside the workspace; use --add-dir"
	case n.Missing:
		n.Note = "no such file"
	case n.Note == "":
		n.Path = at
	}
}

// blind returns an error if the model cannot see the pictures in a message.
func (o *Orchestrator) blind(said Said) error {
	if len(said.Pictures) == 0 || said.Anyway || o.Library.Attach == nil {
		return nil
	}
	if err := o.Library.Attach.Blind(); err != nil {
		return &AttachError{err.Error()}
	}
	return nil
}

// unattached returns an error if a file that the user typed cannot be read.
func unattached(said Said, named []naming) error {
	var failed []string
	for _, n := range named {
		why := n.Note
		if n.Result != "" {
			why = n.Failure()
		}
		if n.own && why != "" && n.Certain() {
			failed = append(failed, fmt.Sprintf("%s: %s", n.Named, why))
		}
	}
	if said.Anyway || failed == nil {
		return nil
	}
	return &AttachError{strings.Join(failed, "; ")}
}

// runNamed runs the calls that read a message's names.
func (o *Orchestrator) runNamed(ctx context.Context, st *turnState, set tool.Set, calls []chat.ToolCall, of []*mention.Reading) (pictures []chat.Part, err error) {
	err = o.Runner.Run(ctx, toolrun.Round{
		Task: st.task, Actor: ActorUser, Set: set, Calls: calls, Person: o.Person(st.sink), Sink: st.sink,
		Deliver: func(_ context.Context, out toolrun.Outcome) error {
			of[out.Index].Result = out.Result.Text
			if o.Library.Attach == nil || out.Tool != o.Library.Attach.Tool { // rules do not cover files outside
				st.reached.add(out)
			}
			for _, img := range out.Images {
				pictures = append(pictures, img)
			}
			return nil
		},
	})
	return pictures, err
}

func notRead(err error) string {
	if errors.Is(err, toolrun.ErrNeedsApproval) {
		return "not read: it needs the user's approval; ask for it with the read tool if it matters"
	}
	return "not read: " + err.Error()
}

// tellUnread warns about named files that were not read.
func (o *Orchestrator) tellUnread(ctx context.Context, st *turnState, readings []mention.Reading) error {
	var missing []string
	for _, r := range readings {
		if r.Note != "" {
			missing = append(missing, fmt.Sprintf("%s: %s", r.Ref, r.Note))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return o.warn(ctx, st, strings.Join(missing, "\n"))
}
