package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Fallback wraps p so that, where the model asked for cannot be had, others
// are tried in turn. Each is announced with a [Restart]. A request that is
// itself wrong, and a key that is refused, would fail everywhere and are not
// sent again.
func Fallback(p Provider, models ...string) Provider {
	if len(models) == 0 {
		return p
	}
	return fallback{p, models}
}

type fallback struct {
	next   Provider
	models []string
}

func (f fallback) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		asked := req.Model
		var failure error
		for i, model := range append([]string{asked}, f.models...) {
			if i > 0 && model == asked {
				continue
			}
			if i > 0 && !yield(Restart{Attempt: i + 1, Of: len(f.models) + 1, Err: fmt.Errorf("%w; trying %s instead", failure, model)}, nil) {
				return
			}
			req.Model = model
			var goOn bool
			if failure, goOn = (retrier{next: f.next}).once(ctx, req, signed(yield, model, asked)); !goOn {
				return
			}
			if !elsewhere(failure) {
				break
			}
		}
		yield(nil, failure)
	}
}

// signed says with the end of a reply which model it is from, if that is not
// the one that was asked.
func signed(yield func(Delta, error) bool, model, asked string) func(Delta, error) bool {
	return func(d Delta, err error) bool {
		if done, ok := d.(Done); ok && model != asked {
			done.Model = model
			d = done
		}
		return yield(d, err)
	}
}

// elsewhere reports whether another model may succeed where one failed.
func elsewhere(err error) bool {
	for _, kind := range []error{ErrNoModel, ErrOverloaded, ErrRateLimited, ErrUnreachable, ErrCutOff} {
		if errors.Is(err, kind) {
			return true
		}
	}
	var e *Error
	return errors.As(err, &e) && e.Status >= 500
}
