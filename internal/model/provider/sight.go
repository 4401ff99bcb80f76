package provider

import (
	"context"
	"errors"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/chat"
)

// ImageRefusals tracks the models that rejected images in this process. The zero value is ready for use.
type ImageRefusals struct {
	mu       sync.Mutex // guards the fields below
	models   map[string]bool
	stripped map[*chat.Part]chat.Message // messages without images, by the original's first part
}

// HasRefused reports whether a model rejected images.
func (b *ImageRefusals) HasRefused(model string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.models[model]
}

func (b *ImageRefusals) record(model string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.models == nil {
		b.models, b.stripped = make(map[string]bool), make(map[*chat.Part]chat.Message)
	}
	b.models[model] = true
}

// imagePlaceholder replaces an image for a model without vision.
const imagePlaceholder = chat.Text("[an image was here; this model does not accept images]")

// stripImages returns messages without their images. The same message always gives the same result.
func (b *ImageRefusals) stripImages(messages []chat.Message) []chat.Message {
	if !slices.ContainsFunc(messages, hasImage) {
		return messages
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	messages = slices.Clone(messages)
	for i, m := range messages {
		if !hasImage(m) {
			continue
		}
		bare, known := b.stripped[&m.Parts[0]]
		if !known {
			bare = chat.Message{Role: m.Role, Parts: slices.Clone(m.Parts)}
			for j, p := range bare.Parts {
				if _, ok := p.(chat.Image); ok {
					bare.Parts[j] = imagePlaceholder
				}
			}
			b.stripped[&m.Parts[0]] = bare
		}
		messages[i] = bare
	}
	return messages
}

func hasImage(m chat.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p chat.Part) bool { _, ok := p.(chat.Image); return ok })
}

// ImageFallback wraps p for models that may not support images. A model that rejects an
// image gets no more images. If the images are older than the model's last reply,
// Sight resends the request without them; otherwise the error is [ErrNoImages].
func ImageFallback(p Provider, blind *ImageRefusals) Provider { return imageFallback{p, blind} }

type imageFallback struct {
	next     Provider
	refusals *ImageRefusals
}

func (s imageFallback) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if s.refusals.HasRefused(req.Model) {
			req.Messages = s.refusals.stripImages(req.Messages)
		}
		for d, err := range s.next.Stream(ctx, req) {
			e, ok := errors.AsType[*Error](err)
			if !ok || !isImageRefusal(e) || !slices.ContainsFunc(req.Messages, hasImage) {
				if !yield(d, err) {
					return
				}
				continue
			}
			s.refusals.record(req.Model)
			if !hasNewImage(req.Messages) {
				for d, err := range s.Stream(ctx, req) {
					if !yield(d, err) {
						return
					}
				}
				return
			}
			yield(d, &Error{Kind: ErrNoImages, Status: e.Status, Err: e.Err})
			return
		}
	}
}

// hasNewImage reports whether an image is newer than the model's last reply.
func hasNewImage(messages []chat.Message) bool {
	for _, m := range slices.Backward(messages) {
		if m.Role == chat.Assistant {
			return false
		}
		if hasImage(m) {
			return true
		}
	}
	return false
}

// isImageRefusal reports whether a server says that a model
// supports no images, rather than that an image is invalid.
func isImageRefusal(e *Error) bool {
	if e.Kind == ErrNoImages {
		return true
	}
	if e.Err == nil || e.Status < 400 || e.Retryable && e.Status != 500 || errors.Is(e, ErrAuth) ||
		errors.Is(e, ErrRateLimited) {
		return false
	}
	p, text := imageErrorPatterns(), strings.ToLower(e.Err.Error())
	return p.refusal.MatchString(text) && !p.flaw.MatchString(text)
}

type imagePatterns struct{ refusal, flaw *regexp.Regexp }

// imageErrorPatterns matches the words of vendors, in lower case.
var imageErrorPatterns = sync.OnceValue(func() imagePatterns {
	const image = "(images?|image[_ ]urls?|input_image|image[_ ]inputs?|vision|multi-?modal\\w*|pictures?|pdfs?|documents?|input_file)\\b"
	return imagePatterns{
		refusal: regexp.MustCompile(strings.Join([]string{
			`(not|n't|n’t|no)( currently)? (support|accept|allow|take)\w*[^.]{0,40}\b` + image,
			`\b` + image + `[^.]{0,60}(not (currently )?(supported|enabled|allowed|available|accepted)|unsupported|only supported by)`,
			`no endpoints found that support (image|pdf|file)`, `not a (multi-?modal|vision)`,
			`unknown variant .{0,3}(image|file|input_)`,
			`at most 0 image`, `missing data required for image`, `content must be a string`, `不支持.{0,8}(图|image|多模态|视觉)`,
		}, "|")),
		flaw: regexp.MustCompile(`format|media[_ ]type|mime|pixels|dimension|too large|exceeds|corrupt|decode`),
	}
})
