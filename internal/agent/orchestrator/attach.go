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
	Tools       tool.Set             // the tools for files in the workspace, and Tool
	OutsideTool string               // reads a file outside the workspace; the model does not have it
	Outside     mention.FileResolver // finds files outside the workspace
	// ImageSupportError returns why the model cannot see pictures, or nil if it can or might.
	ImageSupportError func() error
}

// AttachError reports a file that could not be attached to a message. The message was not sent.
type AttachError struct{ Reason string }

func (e *AttachError) Error() string { return "nothing was sent: " + e.Reason }

// mentionedFile is a name in a message and how coder reads it.
type mentionedFile struct {
	*mention.ReadTarget
	typedByUser bool // the user typed it
	isOutside   bool // it is outside the workspace
}

// readMentions reads the files that a message names, as the user's own calls through the same gate as
// all others. A name that the user typed may be outside the workspace; the user is asked if policy
// requires it, and if the file is unreadable, nothing is sent. A name in pasted or piped text is
// not read if that needs approval: the message says so, and the model may ask for the file.
func (o *Orchestrator) readMentions(ctx context.Context, st *turnState, said Input, refs []mention.Ref) (text string,
	pictures []chat.Part, err error) {
	if err := o.checkImageSupport(said); err != nil {
		return "", nil, err
	}
	if len(refs) == 0 || o.Library.Files == nil {
		return "", nil, nil
	}
	targets, left := mention.Resolve(o.Library.Files, refs)
	readings, set := make([]mention.ReadTarget, len(targets)), st.settings.Tools
	var typed []mention.Ref
	if o.Library.Attachments != nil {
		typed, set = mention.Find(said.TypedText()), o.Library.Attachments.Tools
	}
	var (
		calls []chat.ToolCall
		named []mentionedFile
		of    []*mention.ReadTarget // the reading for each call
	)
	for i, t := range targets {
		readings[i].Target = t
		n := mentionedFile{ReadTarget: &readings[i], typedByUser: slices.Contains(typed, t.Original)}
		call, ok := o.readCall(ctx, set, &n)
		named = append(named, n)
		if ok {
			calls, of = append(calls, call), append(of, n.ReadTarget)
		}
	}
	if err := checkAttachable(said, named); err != nil {
		return "", nil, err
	}
	if err := o.warnUnread(ctx, st, readings); err != nil || len(calls) == 0 {
		return mention.Format(readings, left), nil, err
	}
	if pictures, err = o.runMentionCalls(ctx, st, set, calls, of); err != nil {
		return "", nil, err
	}
	return mention.Format(readings, left), pictures, checkAttachable(said, named)
}

// readCall returns the call that reads n. Without a call, n says why.
func (o *Orchestrator) readCall(ctx context.Context, set tool.Set, n *mentionedFile) (call chat.ToolCall, ok bool) {
	if n.Note != "" && n.typedByUser {
		n.findOutside(o.Library.Attachments.Outside)
	}
	if n.Note != "" {
		return call, false
	}
	args, class := map[string]any{"path": n.Path}, tool.ClassReadFile
	switch {
	case n.Dir:
		class = tool.ClassListFolder
	case n.FirstLine > 0:
		args["offset"], args["limit"] = n.FirstLine, min(n.LastLine-n.FirstLine+1, mention.MaxLines)
	}
	name, _ := set.FirstOfClass(class)
	if n.isOutside {
		name = o.Library.Attachments.OutsideTool
	}
	call = chat.ToolCall{ID: o.NewID("mention"), Name: name, Args: jsonx.MustMarshal(args)}
	if err := o.Runner.CheckUnattended(ctx, set, call); err != nil &&
		!(n.typedByUser && errors.Is(err, toolrun.ErrNeedsApproval)) {
		n.Note = notReadMessage(err)
		return call, false
	}
	return call, true
}

// findOutside looks for a name outside the workspace.
func (n *mentionedFile) findOutside(files mention.FileResolver) {
	found, _ := mention.Resolve(files, []mention.Ref{n.Original})
	if len(found) == 0 || files == nil {
		return
	}
	at, err := files.Locate(found[0].Path)
	if err != nil { // in the workspace
		return
	}
	n.Target, n.isOutside = found[0], true
	switch {
	case n.Dir:
		n.Note = "not read: a folder outside the workspace; use --add-dir"
	case n.IsMissing:
		n.Note = "no such file"
	case n.Note == "":
		n.Path = at
	}
}

// checkImageSupport returns an error if the model cannot see the pictures in a message.
func (o *Orchestrator) checkImageSupport(said Input) error {
	if len(said.Pictures) == 0 || said.SkipUnattachable || o.Library.Attachments == nil {
		return nil
	}
	if err := o.Library.Attachments.ImageSupportError(); err != nil {
		return &AttachError{err.Error()}
	}
	return nil
}

// checkAttachable returns an error if a file that the user typed cannot be read.
func checkAttachable(said Input, named []mentionedFile) error {
	var failed []string
	for _, n := range named {
		why := n.Note
		if n.Result != "" {
			why = n.Failure()
		}
		if n.typedByUser && why != "" && n.IsCertain() {
			failed = append(failed, fmt.Sprintf("%s: %s", n.Original, why))
		}
	}
	if said.SkipUnattachable || failed == nil {
		return nil
	}
	return &AttachError{strings.Join(failed, "; ")}
}

// runMentionCalls runs the calls that read a message's names.
func (o *Orchestrator) runMentionCalls(ctx context.Context, st *turnState, set tool.Set, calls []chat.ToolCall,
	of []*mention.ReadTarget) (pictures []chat.Part, err error) {
	err = o.Runner.Run(ctx, toolrun.Round{
		Task: st.task, Actor: ActorUser, Tools: set, Calls: calls, User: o.NewInteractor(st.sink), Sink: st.sink,
		Deliver: func(_ context.Context, out toolrun.Outcome) error {
			of[out.Index].Result = out.Result.Text
			// rules do not cover files outside
			if o.Library.Attachments == nil || out.Tool != o.Library.Attachments.OutsideTool {
				st.touchedFiles.addOutcome(out)
			}
			for _, img := range out.Images {
				pictures = append(pictures, img)
			}
			return nil
		},
	})
	return pictures, err
}

func notReadMessage(err error) string {
	if errors.Is(err, toolrun.ErrNeedsApproval) {
		return "not read: it needs the user's approval; ask for it with the read tool if it matters"
	}
	return "not read: " + err.Error()
}

// warnUnread warns about named files that were not read.
func (o *Orchestrator) warnUnread(ctx context.Context, st *turnState, readings []mention.ReadTarget) error {
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
