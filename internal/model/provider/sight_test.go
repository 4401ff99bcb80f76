package provider_test

import (
	"errors"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// Each is what a server says to a request with a picture, and whether it refuses pictures by it.
var refusals = map[string]bool{
	"Invalid content type. image_url is only supported by certain models.":                                     true,
	"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj":           true,
	"Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text` at line 1": true,
	"No endpoints found that support image input":                                                              true,
	"At most 0 image(s) may be provided in one request.":                                                       true,
	"qwen3 is not a multimodal model":                                                                          true,
	"this model is missing data required for image input":                                                      true,
	"messages[1].content must be a string":                                                                     true,
	"Image input modality is not enabled for models/x":                                                         true,
	"the model does not support vision":                                                                        true,
	"该模型不支持图片输入":                                                                                               true,
	"You uploaded an unsupported image. Please make sure your image is valid.":                                 false,
	"Could not process image":                                                                                  false,
	"image exceeds 5 MB maximum: 6000000 bytes":                                                                false,
	"messages.0: unsupported image media type image/tiff":                                                      false,
	"The image format is not supported":                                                                        false,
	"max_tokens is too large":                                                                                  false,
	"the server had an error while processing your request":                                                    false,
}

func TestAModelThatRefusesPicturesIsNotSentThemAgain(t *testing.T) {
	shown := chat.Message{Role: chat.User, Parts: []chat.Part{chat.Text("look"), chat.Image{MediaType: "image/png", Data: []byte("x")}}}
	for words, refuses := range refusals {
		var sent [][]chat.Message
		server := replies(func(r provider.Request) ([]provider.Delta, error) {
			sent = append(sent, r.Messages)
			for _, m := range r.Messages {
				for range chat.PartsOf[chat.Image](m) {
					return nil, &provider.Error{Kind: provider.ErrBadRequest, Status: 400, Err: errors.New(words)}
				}
			}
			return hello(r)
		})
		var blind provider.ImageRefusals
		p := provider.ImageFallback(server, &blind)
		ask := func(messages ...chat.Message) error {
			_, err := provider.Collect(p.Stream(t.Context(), provider.Request{Model: "m", Messages: messages}), unwatched)
			return err
		}
		if err := ask(shown); errors.Is(err, provider.ErrNoImages) != refuses || blind.HasRefused("m") != refuses || err == nil {
			t.Errorf("%q: %v", words, err)
		}
		if !refuses {
			continue
		}
		if err := ask(shown, chat.TextMessage(chat.User, "again")); err != nil {
			t.Errorf("%q: the next request: %v", words, err)
		}
		if err := ask(shown, chat.TextMessage(chat.User, "and again")); err != nil || !chat.IsSame(sent[1][0], sent[2][0]) {
			t.Errorf("%q: the message without its picture is another one each time, or %v", words, err)
		}
		if blind.HasRefused("other") {
			t.Error("another model counts as blind")
		}
	}
}

func TestAnOldPictureDoesNotKeepARequestFromBeingSent(t *testing.T) {
	shown := chat.Message{Role: chat.User, Parts: []chat.Part{chat.Image{MediaType: "image/png"}}}
	asked := 0
	p := provider.ImageFallback(replies(func(r provider.Request) ([]provider.Delta, error) {
		if asked++; asked == 1 {
			return nil, &provider.Error{Status: 400, Err: errors.New("no images are supported: images are not supported")}
		}
		return hello(r)
	}), new(provider.ImageRefusals))
	r, err := provider.Collect(p.Stream(t.Context(), provider.Request{Messages: []chat.Message{shown, chat.TextMessage(chat.Assistant, "I see"), chat.TextMessage(chat.User, "go on")}}), unwatched)
	if err != nil || r.Message.Text() != "hi" || asked != 2 {
		t.Errorf("%q, %v, asked %d times", r.Message.Text(), err, asked)
	}
}
