package app

import (
	"cmp"

	"coder/internal/core/event"
	"coder/internal/tool"
	"coder/internal/tool/files"
)

// recollection learns from the record which files the model has seen in earlier processes,
// and with which content, so that this process does not overwrite them blindly.
type recollection struct {
	files         files.SeenFiles
	callEffects   map[string][]tool.Effect // of running calls
	restoredFiles []string                 // files that the user just restored
}

func (m *recollection) add(r event.Record) {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		if m.callEffects == nil {
			m.callEffects = make(map[string][]tool.Effect)
		}
		m.callEffects[e.CallID] = e.Effects
	case event.ToolCallCompleted:
		effects := m.callEffects[e.CallID]
		delete(m.callEffects, e.CallID)
		if e.IsError {
			return
		}
		if e.Author == event.ActorUser && e.Tool == "undo" {
			for _, c := range e.Changes {
				m.restoredFiles = append(m.restoredFiles, cmp.Or(c.After.Path, c.Before.Path))
			}
		}
		for _, effect := range effects {
			if len(e.SeenFiles) == 0 && (effect.Kind == tool.Read || effect.Kind == tool.Write) {
				m.files.Restore(effect.Target, "") // the model may have seen it, in an unknown state
			}
		}
		for _, f := range e.SeenFiles {
			m.files.Restore(f.Path, f.Hash)
		}
	case event.TaskCreated:
		m.restoredFiles = nil
	case event.ContextRewound:
		for _, file := range m.restoredFiles { // the messages about it are no longer in the conversation
			m.files.Forget(file)
		}
		m.restoredFiles = nil
	}
}

// addLive learns from this process's records, without what calls saw, which is already known.
func (m *recollection) addLive(r event.Record) {
	e, completed := r.Event.(event.ToolCallCompleted)
	_, begins := r.Event.(event.TaskCreated)
	_, rewound := r.Event.(event.ContextRewound)
	if begins || rewound || completed && e.Author == event.ActorUser && e.Tool == "undo" {
		m.add(r)
	}
}
