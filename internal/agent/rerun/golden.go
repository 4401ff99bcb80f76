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

// ToGolden is what the rerun came to, with nothing in it of where it was run; nil if it took another course.
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
		p.rerun.Time = p.recorded.Time // of subtasks the rerun's clock does not tell it
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

// withContentName is a file that is named by what it held, and that.
func (f *Replayer) withContentName(ctx context.Context, s event.FileState) (event.FileState, []byte, error) {
	if !past.IsFile(s) {
		return s, nil, nil
	}
	data, err := f.workCopy.Content(ctx, s)
	s.Hash, s.Size = past.ContentHash(data), int64(len(data))
	return s, data, err
}

// portableRecord is a record that does not tell where it was made, and names contents by what
// they are. The golden session has those that calls left, to be compared, and whole if a call is not made again.
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
			if err != nil { // too long to be compared
				return s
			}
			data = []byte(secret.ShapeConcealer().Text(here.Text(string(data))))
			s.Hash, s.Size = past.ContentHash(data), int64(len(data))
			if !bytes.Equal(g.Files[s.Path], data) { // else it is there by its path
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
