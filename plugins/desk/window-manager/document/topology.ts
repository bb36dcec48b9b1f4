import * as v from 'valibot'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import {
  type LayoutDocument,
  type LayoutNode,
  type Rect,
  type WindowDiagnostic,
  WindowPreferences,
} from '../../../../schemas/window-manager.js'
import { DOCUMENT_VERSION, type WindowDocument, windowOf } from './document.js'

/** Tolerance for accumulated rounding errors. */
const TOLERANCE = 1e-6
const ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/
/** Limits that keep a document fast to read and write; text lengths are in characters. */
export const limits = { desktops: 64, windows: 500, depth: 24, text: 512, characters: 4 * 1024 * 1024 } as const

/** An override accepts the values of its setting, or null. */
const OverrideValues = v.object(
  Object.fromEntries(Object.entries(WindowPreferences.entries).map(([name, schema]) => [name, v.nullish(schema)])),
)

/** Every problem of a document, in document order; none for a valid document. */
export function diagnose(document: LayoutDocument, workspaceId: string): WindowDiagnostic[] {
  const found = new Findings(document)
  found.head(workspaceId)
  found.windows()
  for (const [index, desktop] of document.desktops.entries()) found.desktop(desktop, index)
  found.places()
  return found.list
}

/** Whether a document satisfies every invariant. */
export function isValid(document: LayoutDocument, workspaceId: string): document is LayoutDocument & WindowDocument {
  return diagnose(document, workspaceId).length === 0
}

type Desktop = LayoutDocument['desktops'][number]
type Group = Desktop['groups'][number]
type Placement = 'tiled' | 'stacked' | 'floating'

/** Collects the problems of a document in one walk. */
class Findings {
  readonly list: WindowDiagnostic[] = []
  /** Path at which each window was found. */
  readonly #placed = new Map<string, string>()
  readonly #desktopIds = new Set<string>()
  readonly #groupIds = new Set<string>()
  readonly #nodeIds = new Set<string>()

  constructor(private readonly document: LayoutDocument) {}

  add(code: string, path: string, message: string): void {
    this.list.push({ code: `topology.${code}`, path, message })
  }

  head(workspaceId: string): void {
    const { version, workspace_id, desktops, windows, overrides } = this.document
    if (version !== DOCUMENT_VERSION)
      this.add('version', 'version', `version ${version} is not supported; documents have version ${DOCUMENT_VERSION}`)
    if (workspace_id !== workspaceId)
      this.add('workspace', 'workspace_id', workspaceId ? `must be ${workspaceId}` : 'must be empty')
    if (JSON.stringify(this.document).length > limits.characters)
      this.add('limit', 'document', `at most ${limits.characters} characters of JSON`)
    if (desktops.length === 0) this.add('desktops', 'desktops', 'there must be at least one desktop')
    if (desktops.length > limits.desktops) this.add('limit', 'desktops', `at most ${limits.desktops} desktops`)
    if (Object.keys(windows).length > limits.windows) this.add('limit', 'windows', `at most ${limits.windows} windows`)
    for (const issue of v.safeParse(OverrideValues, overrides).issues ?? [])
      this.add('overrides', `overrides.${v.getDotPath(issue)}`, issueText(issue))
  }

  windows(): void {
    const desktops = new Set(this.document.desktops.map(desktop => desktop.id))
    for (const [key, window] of Object.entries(this.document.windows)) {
      const at = `windows.${key}`
      this.#id(window.id, `${at}.id`)
      if (window.id !== key) this.add('window_key', `${at}.id`, 'the id of a window is its key')
      if (window.app.trim() === '' || window.app.length > limits.text)
        this.add('window_app', `${at}.app`, `1 to ${limits.text} characters`)
      if (!desktops.has(window.desktop_id))
        this.add('window_desktop', `${at}.desktop_id`, 'there is no desktop with this id')
      this.#rect('window_rect', window.floating_rect, `${at}.floating_rect`)
      if (!['tiled', 'stacked', 'floating'].includes(window.placement))
        this.add('window_placement', `${at}.placement`, 'tiled, stacked or floating')
      else if (window.minimized && window.placement !== 'floating')
        this.add('window_minimized', `${at}.minimized`, 'only a floating window can be minimized')
    }
  }

  desktop(desktop: Desktop, index: number): void {
    const at = `desktops.${index}`
    this.#id(desktop.id, `${at}.id`)
    if (this.#desktopIds.has(desktop.id)) this.add('desktop_duplicate', `${at}.id`, 'another desktop has this id')
    this.#desktopIds.add(desktop.id)
    if (desktop.name.length > limits.text) this.add('limit', `${at}.name`, `at most ${limits.text} characters`)
    if (desktop.order !== index) this.add('desktop_order', `${at}.order`, `must be its place in the list, ${index}`)
    if (!['standard', 'focus'].includes(desktop.purpose))
      this.add('desktop_purpose', `${at}.purpose`, 'standard or focus')
    for (const [i, group] of desktop.groups.entries()) this.#group(group, desktop, `${at}.groups.${i}`, i)
    for (const [i, id] of desktop.floating.entries()) this.#addPlacement(id, desktop, 'floating', `${at}.floating.${i}`)
    const owner = desktop.focus_owner ?? undefined
    if (owner !== undefined && !this.#placed.get(owner)?.startsWith(`${at}.`))
      this.add('focus_owner', `${at}.focus_owner`, 'must be a window of this desktop')
  }

  /** Windows that are on no desktop. */
  places(): void {
    for (const key of Object.keys(this.document.windows))
      if (!this.#placed.has(key)) this.add('window_unplaced', `windows.${key}`, 'the window is on no desktop')
  }

  #group(group: Group, desktop: Desktop, at: string, index: number): void {
    this.#id(group.id, `${at}.id`)
    if (this.#groupIds.has(group.id)) this.add('group_duplicate', `${at}.id`, 'another group has this id')
    this.#groupIds.add(group.id)
    if (this.#rect('group_frame', group.frame, `${at}.frame`))
      for (const other of desktop.groups.slice(0, index))
        if (overlaps(group.frame, other.frame))
          this.add('group_overlap', `${at}.frame`, `overlaps the frame of group ${other.id}`)
    this.#node(group.root, desktop, `${at}.root`, undefined, [])
  }

  #node(
    node: LayoutNode,
    desktop: Desktop,
    at: string,
    above: string | null | undefined,
    ancestors: readonly string[],
  ): void {
    this.#id(node.id, `${at}.id`)
    if (ancestors.includes(node.id)) this.add('node_cycle', `${at}.id`, 'a node cannot be inside itself')
    else if (this.#nodeIds.has(node.id)) this.add('node_duplicate', `${at}.id`, 'another node has this id')
    this.#nodeIds.add(node.id)
    if (ancestors.length >= limits.depth) {
      this.add('limit', at, `at most ${limits.depth} levels of nodes`)
      return
    }
    if (node.kind === 'leaf') this.#leaf(node, desktop, at)
    else if (node.kind === 'stack') this.#stack(node, desktop, at)
    else if (node.kind === 'split') this.#split(node, desktop, at, above, ancestors)
    else this.add('node_kind', `${at}.kind`, 'leaf, split or stack')
  }

  #leaf(node: LayoutNode, desktop: Desktop, at: string): void {
    if (node.window_id) this.#addPlacement(node.window_id, desktop, 'tiled', `${at}.window_id`)
    else this.add('leaf_window', `${at}.window_id`, 'a leaf has a window')
  }

  #stack(node: LayoutNode, desktop: Desktop, at: string): void {
    const ids = node.window_ids ?? []
    if (ids.length < 2) this.add('stack_size', `${at}.window_ids`, 'a stack has two windows or more')
    if (!ids.includes(node.active_id ?? ''))
      this.add('stack_active', `${at}.active_id`, 'the active window is one of the stack')
    for (const [i, id] of ids.entries()) this.#addPlacement(id, desktop, 'stacked', `${at}.window_ids.${i}`)
  }

  #split(
    node: LayoutNode,
    desktop: Desktop,
    at: string,
    above: string | null | undefined,
    ancestors: readonly string[],
  ): void {
    const { axis, children = [], weights = [] } = node
    if (axis !== 'horizontal' && axis !== 'vertical') this.add('split_axis', `${at}.axis`, 'horizontal or vertical')
    else if (axis === above)
      this.add('split_nested', `${at}.axis`, 'a split inside one of the same axis has to be flattened into it')
    if (children.length < 2) this.add('split_children', `${at}.children`, 'a split has two children or more')
    if (weights.length !== children.length) this.add('split_weights', `${at}.weights`, 'one weight for each child')
    else if (weights.some(weight => !(weight > 0)) || Math.abs(sum(weights) - 1) > TOLERANCE)
      this.add('split_weights', `${at}.weights`, 'weights are more than 0, and 1 together')
    for (const [i, child] of children.entries())
      this.#node(child, desktop, `${at}.children.${i}`, axis, [...ancestors, node.id])
  }

  #addPlacement(id: string, desktop: Desktop, placement: Placement, at: string): void {
    const window = windowOf(this.document, id)
    const before = this.#placed.get(id)
    if (before !== undefined) this.add('window_doubled', at, `window ${id} is at ${before} already`)
    else this.#placed.set(id, at)
    if (!window) this.add('window_missing', at, `there is no window ${id}`)
    else if (window.desktop_id !== desktop.id)
      this.add('window_foreign', at, `window ${id} belongs to desktop ${window.desktop_id}`)
    else if (window.placement !== placement)
      this.add('window_placement', at, `window ${id} is ${placement} here, but says ${window.placement}`)
  }

  #id(id: string, at: string): void {
    if (!ID.test(id)) this.add('id', at, 'an id is 1 to 64 letters, digits, dots, colons, dashes and underscores')
  }

  #rect(code: string, rect: Rect, at: string): boolean {
    const fine = isNormalised(rect)
    if (!fine) this.add(code, at, 'x and y from 0, width and height above 0, and nothing beyond 1')
    return fine
  }
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)

/** Whether a rectangle lies within the desktop. */
export const isNormalised = ({ x, y, width, height }: Rect) =>
  x >= 0 && y >= 0 && width > 0 && height > 0 && x + width <= 1 + TOLERANCE && y + height <= 1 + TOLERANCE

/** Whether two frames overlap by more than an edge. */
export function overlaps(a: Rect, b: Rect): boolean {
  const across = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x)
  const down = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y)
  return across > TOLERANCE && down > TOLERANCE
}
