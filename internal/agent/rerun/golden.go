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

// ToGolden is what the rerun came to, with nothing in it of where it was run.
func (f *Replayer) ToGolden(ctx context.Context, g golden.Golden) (*golden.Golden, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	except := g.SkippedRecords
	g.Format, g.Records, g.Start, g.SkippedRecords = golden.Format, nil, nil, nil
	g.Files, g.Contents, g.LaterChanges = make(map[string][]byte), make(map[string][]byte),
		make(map[uint64][]event.FileState)
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
// they are. The golden session has those that calls left, to be compared.
func (f *Replayer) portableRecord(ctx context.Context, r event.Record, g *golden.Golden) (event.Record, error) {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		e.Tree, e.Repository, e.Sandbox = "", "", ""
		r.Event = e
	case event.ToolCallCompleted:
		e.Changes, _ = past.ExpandChanges(ctx, f.rerunSide.Contents, e.Changes)
		e.DurationMs = 0
		limit := int64(maxMaskedBytes)
		// it is not made again
		if asked, ok := f.requested[e.CallID].Event.(event.ToolCallRequested); ok &&
			(isExternalCall(asked) || wasInterrupted(e)) {
			limit = maxContentBytes
		}
		r.Event = event.MapFileStates(e, func(s event.FileState) event.FileState { return f.addOutcome(ctx, s, limit, g) })
	}
	r.Seal = ""
	line, err := event.Encode(r)
	if err != nil {
		return r, err
	}
	at := make(paths.Map)
	maps.Copy(at, f.rerunSide.Paths)
	maps.Copy(at, f.goldenPaths(g))
	again, _, err := event.Decode([]byte(at.Text(string(line))), event.LogOf(r.Event))
	return again, err
}

// goldenPaths puts the path that stands for the workspace in a golden session in place of others.
func (f *Replayer) goldenPaths(g *golden.Golden) paths.Map {
	return paths.Map{f.workCopy.Dir(): g.Root, f.recording.Root: g.Root}
}

// addOutcome takes in what a call left in a file, if that can be compared.
func (f *Replayer) addOutcome(ctx context.Context, s event.FileState, limit int64, g *golden.Golden) event.FileState {
	if !past.IsFile(s) || s.ContentLost || secret.IsSecretFile(s.Path) {
		return s
	}
	data, err := f.rerunSide.Contents.Content(ctx, s, limit)
	if err != nil {
		return s
	}
	data = []byte(secret.ShapeConcealer().Text(f.goldenPaths(g).Text(string(data))))
	if !bytes.Equal(g.Files[s.Path], data) { // else it is there by its path
		g.Contents[past.ContentHash(data)] = data
	}
	s.Hash, s.Size = past.ContentHash(data), int64(len(data))
	return s
}
