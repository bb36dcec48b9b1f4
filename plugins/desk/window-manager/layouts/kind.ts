import * as v from 'valibot'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import { shown } from '../../../../kernel/kit/text.js'
import { kind, type RecordScope } from '../../../../kernel/plugin.js'
import { type WindowDiagnostic, WindowLayoutSpec } from '../../../../schemas/window-manager.js'
import { windowOf } from '../document/document.js'
import { diagnose } from '../document/topology.js'
import type { SavedLayout } from './apply.js'

/** Version of the layout format. */
const LAYOUT_VERSION = 1
/** Largest canonical spec, in bytes. */
export const MAX_LAYOUT_BYTES = 4 * 1024 * 1024
const SHOWN = 20

/** All problems of a layout whose members have valid types. */
function layoutProblems(spec: WindowLayoutSpec, scope: RecordScope): WindowDiagnostic[] {
  const found: WindowDiagnostic[] = []
  const add = (code: string, path: string, message: string) => found.push({ code: `layout.${code}`, path, message })
  if (spec.version !== LAYOUT_VERSION)
    add('version', 'version', `version ${spec.version} is not supported; layouts have version ${LAYOUT_VERSION}`)
  if (spec.display_name.trim() === '' || spec.display_name.length > 200)
    add('display_name', 'display_name', '1 to 200 characters')
  const slots = new Set<string>()
  for (const [i, { id, window_id }] of (spec.participants ?? []).entries()) {
    if (id.trim() === '') add('participant', `participants.${i}.id`, 'must not be empty')
    if (slots.has(id)) add('participant', `participants.${i}.id`, `another slot is named ${id}`)
    slots.add(id)
    if (!windowOf(spec.document, window_id))
      add('participant', `participants.${i}.window_id`, `the document has no window ${window_id}`)
  }
  const workspaceId = scope.kind === 'workspace' ? (scope.id ?? '') : ''
  const inside = diagnose(spec.document, workspaceId).map(({ path, ...rest }) => ({
    ...rest,
    path: `document.${path}`,
  }))
  return [...found, ...inside]
}

export type DecodedLayout =
  | { readonly is: 'layout'; readonly layout: WindowLayoutSpec & SavedLayout }
  | { readonly is: 'invalid'; readonly diagnostics: readonly WindowDiagnostic[] }

/**
 * Strictly decodes a layout from a record or file: reports unknown and mistyped members, versions, and all problems of the
 * topology at once. Pure. The document's workspace must be that of the scope, or empty for a global scope.
 */
export function decodeLayout(spec: unknown, scope: RecordScope): DecodedLayout {
  const decoded = v.safeParse(WindowLayoutSpec, spec)
  if (!decoded.success) {
    const diagnostics = decoded.issues.map(issue => ({
      code: 'layout.invalid',
      path: v.getDotPath(issue) ?? 'spec',
      message: issueText(issue),
    }))
    return { is: 'invalid', diagnostics }
  }
  const diagnostics = layoutProblems(decoded.output, scope)
  if (diagnostics.length > 0) return { is: 'invalid', diagnostics }
  return { is: 'layout', layout: decoded.output as WindowLayoutSpec & SavedLayout }
}

/** Layouts of desktops and tiled groups, from packages or saved by people; read when one is applied. */
export const LayoutKind = kind<WindowLayoutSpec>({
  name: 'window_layout',
  spec: WindowLayoutSpec,
  maxBytes: MAX_LAYOUT_BYTES,
  onDemand: true,
  check({ id, scope, spec }) {
    if (spec.id !== id) return `id: ${shown(spec.id)} is not the id of the record`
    const problems = layoutProblems(spec, scope)
    if (problems.length === 0) return undefined
    const lines = problems.slice(0, SHOWN).map(({ code, path, message }) => `${path}: ${message} (${code})`)
    return [...lines, ...(problems.length > SHOWN ? [`and ${problems.length - SHOWN} more`] : [])].join('; ')
  },
})
