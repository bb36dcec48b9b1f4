import * as v from 'valibot'
import { registry } from '../../../kernel/plugin.js'
import type { InboxItem } from '../../../schemas/sessions.js'

/** Contributes items that wait for a person outside of any session's stream. */
export interface InboxSource {
  /** @param most of each kind; undefined: as many as fit on a screen or two */
  readonly read: (most?: number) => readonly InboxItem[]
}

export const InboxSources = registry<InboxSource>('sessions.inbox@1', v.looseObject({ read: v.function() }))
