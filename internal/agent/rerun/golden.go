package rerun

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"coder/internal/core/event"
	"coder/internal/core/paths"
	"coder/internal/core/secret"
	"coder/internal/record/golden"
	"coder/internal/record/past"
)

// ToGolden returns the rerun's records without traces of this machine, or nil after a difference in kind.
func (f *Replayer) ToGolden(ctx context.Context, g golden.Golden) (*golden.Golden, error) {
	if f.diverged {
		return nil, nil
	}
	except := g.SkippedRecords
	g.Format, g.Records, g.Start, g.SkippedRecords = golden.Format, nil, nil, nil
	g.Files, g.Contents = make(map[string][]byte), make(map[string][]byte)
	g.LaterChanges = make(map[uint64][]event.FileState)
	for _, name := range slices.Sorted(maps.Keys(f.workCopy.Start)) {
		s, data, err := f.withContentName(ctx, f.workCopy.Start[name])
		if err != nil {
			return nil, err
		}
		g.Start, g.Files[s.Path] = append(g.Start, s), data
	}
	for _, p := range alignRecords(f.recording, f.produced) {
		p.rerun.Time = p.recorded.Time // the rerun's clock does not cover subtasks
		r, err := f.portableRecord(ctx, p.rerun, &g)
		if err != nil {
			return nil, err
		}
		g.Records = append(g.Records, r)
		if slices.Contains(except, p.recorded.Seq) {
			g.SkippedRecords = append(g.SkippedRecords, r.Seq)
		}
		for _, s := range f.workCopy.LaterChanges[p.recorded.Seq] {
			s, data, err := f.withContentName(ctx, s)
			if err != nil {
				return nil, err
			}
			if past.IsFile(s) {
				g.Contents[s.Hash] = data
			}
			g.LaterChanges[r.Seq] = append(g.LaterChanges[r.Seq], s)
		}
	}
	return &g, nil
}

// withContentName returns a file's state with its content's name, and the content.
func (f *Replayer) withContentName(ctx context.Context, s event.FileState) (event.FileState, []byte, error) {
	if !past.IsFile(s) {
		return s, nil, nil
	}
	data, err := f.workCopy.Content(ctx, s)
	s.Hash, s.Size = past.ContentHash(data), int64(len(data))
	return s, data, err
}

// portableRecord returns a record without paths of this machine, with contents named by their hashes. It
// adds the files that calls left to the golden session: whole ones for calls that a rerun does not repeat.
func (f *Replayer) portableRecord(ctx context.Context, r event.Record, g *golden.Golden) (event.Record, error) {
	here := paths.Map{f.workCopy.Dir(): g.Root, f.recording.Root: g.Root}
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		e.Tree, e.Repository, e.Sandbox = "", "", ""
		r.Event = e
	case event.ToolCallCompleted:
		e.Changes, _ = past.ExpandChanges(ctx, f.RerunSide.Contents, e.Changes)
		e.DurationMs = 0
		limit := int64(maxMaskedBytes)
		asked, ok := f.requested[e.CallID].Event.(event.ToolCallRequested)
		if ok && (isExternalCall(asked) || wasInterrupted(e)) {
			limit = maxContentBytes
		}
		r.Event = event.MapFileStates(e, func(s event.FileState) event.FileState {
			if !past.IsFile(s) || s.ContentLost || secret.IsSecretFile(s.Path) {
				return s
			}
			data, err := f.RerunSide.Contents.Content(ctx, s, limit)
			if err != nil { // too long to compare
				return s
			}
			data = []byte(secret.ShapeConcealer().Text(here.Text(string(data))))
			s.Hash, s.Size = past.ContentHash(data), int64(len(data))
			if !bytes.Equal(g.Files[s.Path], data) { // otherwise the path names it
				g.Contents[s.Hash] = data
			}
			return s
		})
	}
	r.Seal = ""
	line, err := event.Encode(r)
	if err != nil {
		return r, err
	}
	maps.Copy(here, f.RerunSide.Paths)
	here[f.workCopy.Dir()] = g.Root
	again, _, err := event.Decode([]byte(here.Text(string(line))), event.LogOf(r.Event))
	return again, err
}
