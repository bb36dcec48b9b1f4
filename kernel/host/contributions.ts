import { Redactors } from '../contract/redact.js'
import type { Contribute, Surface } from '../contract/surface.js'

/** The registries that a surface fills. A tap `redact` on the kernel, of `apiVersion: 1`, contributes to {@link Redactors}. */
export function contributionsOf<S>({ registries = [], hooks }: Surface<S>): readonly Contribute<S>[] {
  const { redact } = (hooks ?? {}) as { readonly redact?: Contribute<S>['entries'] }
  return redact ? [...registries, { to: Redactors, entries: redact }] : registries
}
