package app

import (
	"context"
	"io"

	"coder/internal/agent/conversation"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/model/anthropic"
	"coder/internal/model/gemini"
	"coder/internal/model/openai"
	"coder/internal/model/responses"
	"coder/internal/model/textcalls"
)

// bodyBuilders rebuild request bodies, by wire.
var bodyBuilders = map[string]func(chat.SentRequest, []chat.Message) ([]byte, bool){
	"openai": openai.Rebuild, "responses": responses.Rebuild, "anthropic": anthropic.Rebuild, "gemini": gemini.Rebuild,
}

// WriteRequest writes the body of a session's last answered request, or
// of the last one answered up to record at, byte for byte as it was sent.
func (s *Store) WriteRequest(ctx context.Context, w io.Writer, id string, at uint64) error {
	var all []event.Record
	reply := -1 // index of the answer's record
	others := make(map[string]bool)
	for r, err := range s.Logs.Read(ctx, id, 0) {
		if err != nil {
			return err
		}
		if at > 0 && r.Seq > at {
			break
		}
		all = append(all, r)
		switch e := r.Event.(type) {
		case event.TaskCreated:
			others[r.Task] = e.ParentID != ""
		case event.MessageAdded:
			// Without a number, only requests in the session's own conversation count.
			if e.Request != nil && (at > 0 || !others[r.Task]) {
				reply = len(all) - 1
			}
		}
	}
	if reply < 0 {
		return inputErrorf("session %s has no recorded request up to this point; sessions of earlier versions have none", id)
	}
	body, ok := rebuildRequest(all[:reply+1], others)
	if !ok {
		return inputErrorf("the request answered by record %d of session %s cannot be rebuilt exactly: a record is damaged, or a key was masked", all[reply].Seq, id)
	}
	_, err := w.Write(body)
	return err
}

// rebuildRequest rebuilds the request that the last of records answers.
func rebuildRequest(records []event.Record, others map[string]bool) ([]byte, bool) {
	last := records[len(records)-1]
	talk := new(conversation.Conversation)
	if others[last.Task] {
		talk = conversation.New(last.Task)
	}
	for _, r := range records[:len(records)-1] {
		talk.Add(r)
	}
	sent, said := *last.Event.(event.MessageAdded).Request, talk.View()
	if sent.Head == "" {
		sent.Head = talk.RequestHead()
	}
	if sent.CallsAsText {
		said = textcalls.RenderMessages(said)
	}
	again, known := bodyBuilders[sent.Wire]
	if !known {
		return nil, false
	}
	return again(sent, said)
}
