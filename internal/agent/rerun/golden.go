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

// Golden is what the rerun came to, with nothing in it of where it was run.
func (f *Follower) Golden(ctx context.Context, g golden.Golden) (*golden.Golden, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	except := g.Except
	g.Form, g.Records, g.Start, g.Except = golden.Form, nil, nil, nil
	g.Files, g.Contents, g.Later = make(map[string][]byte), make(map[string][]byte), make(map[uint64][]event.FileState)
	for _, name := range slices.Sorted(maps.Keys(f.copy.Start)) {
		s, data, err := f.named(ctx, f.copy.Start[name])
		if err != nil {
			return nil, err
		}
		g.Start, g.Files[s.Path] = append(g.Start, s), data
	}
	for _, p := range align(f.take, f.made) {
		p.is.Time = p.was.Time // of subtasks the rerun's clock does not tell it
		r, err := f.portable(ctx, p.is, &g)
		if err != nil {
			return nil, err
		}
		g.Records = append(g.Records, r)
		if slices.Contains(except, p.was.Seq) {
			g.Except = append(g.Except, r.Seq)
		}
		for _, s := range f.copy.Later[p.was.Seq] {
			s, data, err := f.named(ctx, s)
			if err != nil {
				return nil, err
			}
			if past.IsFile(s) {
				g.Contents[s.Hash] = data
			}
			g.Later[r.Seq] = append(g.Later[r.Seq], s)
		}
	}
	return &g, nil
}

// named is a file that is named by what it held, and that.
func (f *Follower) named(ctx context.Context, s event.FileState) (event.FileState, []byte, error) {
	if !past.IsFile(s) {
		return s, nil, nil
	}
	data, err := f.copy.Content(ctx, s)
	s.Hash, s.Size = past.Sum(data), int64(len(data))
	return s, data, err
}

// portable is a record that does not tell where it was made, and names contents by what
// they are. The golden session has those that calls left, to be compared.
func (f *Follower) portable(ctx context.Context, r event.Record, g *golden.Golden) (event.Record, error) {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		e.Tree, e.Repository, e.Confined = "", "", ""
		r.Event = e
	case event.ToolCallCompleted:
		e.Changes, _ = past.Expand(ctx, f.is.Kept, e.Changes)
		e.DurationMs = 0
		limit := int64(maxCompared)
		if asked, ok := f.asked[e.CallID].Event.(event.ToolCallRequested); ok && (outside(asked) || interrupted(e)) { // it is not made again
			limit = maxRead
		}
		r.Event = event.WithStates(e, func(s event.FileState) event.FileState { return f.outcome(ctx, s, limit, g) })
	}
	r.Seal = ""
	line, err := event.Encode(r)
	if err != nil {
		return r, err
	}
	at := make(paths.Map)
	maps.Copy(at, f.is.Paths)
	maps.Copy(at, f.moved(g))
	again, _, err := event.Decode([]byte(at.Text(string(line))), event.LogOf(r.Event))
	return again, err
}

// moved puts the path that stands for the workspace in a golden session in place of others.
func (f *Follower) moved(g *golden.Golden) paths.Map {
	return paths.Map{f.copy.Dir(): g.Root, f.take.Root: g.Root}
}

// outcome takes in what a call left in a file, if that can be compared.
func (f *Follower) outcome(ctx context.Context, s event.FileState, limit int64, g *golden.Golden) event.FileState {
	if !past.IsFile(s) || s.Lost || secret.Is(s.Path) {
		return s
	}
	data, err := f.is.Kept.Content(ctx, s, limit)
	if err != nil {
		return s
	}
	data = []byte(secret.Shapes().Text(f.moved(g).Text(string(data))))
	if !bytes.Equal(g.Files[s.Path], data) { // else it is there by its path
		g.Contents[past.Sum(data)] = data
	}
	s.Hash, s.Size = past.Sum(data), int64(len(data))
	return s
}
