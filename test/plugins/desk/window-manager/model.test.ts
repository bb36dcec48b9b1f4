import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import { changesBetween, happenings } from '../../../../plugins/desk/window-manager/document/changes.js'
import {
  emptyDocument,
  nodesIn,
  type WindowDocument,
  windowsIn,
} from '../../../../plugins/desk/window-manager/document/document.js'
import { entryOf, stepped } from '../../../../plugins/desk/window-manager/document/history.js'
import { diagnose } from '../../../../plugins/desk/window-manager/document/topology.js'
import { type CommandId, commandTable } from '../../../../plugins/desk/window-manager/reduce/command-table.js'
import { isHistoryCommand, reduce } from '../../../../plugins/desk/window-manager/reduce/reduce.js'
import type { HistoryEntry } from '../../../../schemas/window-manager.js'
import { Dice, forSeeds } from '../../../kernel/fixtures/dice.js'

const STEPS = Number(process.env.SVC_STEPS ?? 150)
const WORKSPACE = 'ws_1'
const ids = Object.keys(commandTable) as CommandId[]
type Plain = Exclude<CommandId, 'layout.undo' | 'layout.redo'>

/** A payload that fits its schema; most name something that is there, some do not. */
function payloadFor(id: Plain, { desktops, windows }: WindowDocument, dice: Dice): unknown {
  const window = () => (dice.chance(0.03) ? 'win_gone' : (dice.of(Object.keys(windows)) ?? 'win_gone'))
  const desktop = () => (dice.chance(0.03) ? 'dsk_gone' : dice.of(desktops).id)
  const nodes = desktops.flatMap(({ groups }) => groups.flatMap(({ root }) => nodesIn(root)))
  const split = () => dice.of(nodes.filter(node => node.kind === 'split'))?.id ?? 'nd_gone'
  const group = () => dice.of(desktops.flatMap(({ groups }) => groups))?.id ?? 'grp_gone'
  const rect = () => ({ x: dice.upTo(5) / 10, y: dice.upTo(5) / 10, width: 0.1 + dice.upTo(6) / 10, height: 0.5 })
  const edge = () => dice.of(['left', 'right', 'top', 'bottom', 'center'] as const)
  const maybe = <T>(name: string, value: () => T) => (dice.chance(0.5) ? { [name]: value() } : {})
  const make: { readonly [C in Plain]: () => unknown } = {
    'desktop.create': () => ({ ...maybe('order', () => dice.upTo(4)), ...maybe('purpose', () => 'focus') }),
    'desktop.update': () => ({ desktop_id: desktop(), name: `n${dice.upTo(9)}` }),
    'desktop.reorder': () => ({ desktop_id: desktop(), order: dice.upTo(5) }),
    'desktop.switch': () => ({ desktop_id: desktop() }),
    'desktop.delete': () => ({ desktop_id: desktop(), ...maybe('move_to', desktop) }),
    'window.open': () => ({
      app: dice.of(['mail', 'code', 'shell']),
      ...maybe('desktop_id', desktop),
      ...(dice.chance(0.2) && { floating_rect: rect() }),
      ...(dice.chance(0.3) && { target_window_id: window(), edge: edge() }),
      ...(dice.chance(0.2) && { instance_key: `k${dice.upTo(3)}` }),
    }),
    'window.navigate': () => ({ window_id: window(), route: { pathname: `/${dice.upTo(9)}`, search: {} } }),
    'window.close': () => ({ window_id: window() }),
    'window.focus': () => ({ window_id: window() }),
    'window.move': () => ({
      window_id: window(),
      ...maybe('desktop_id', desktop),
      ...(dice.chance(0.5) && { target_window_id: window(), edge: edge() }),
      ...(dice.chance(0.2) && { floating_rect: rect() }),
    }),
    'window.swap': () => ({ window_id: window(), target_window_id: window() }),
    'window.toggle_floating': () => ({ window_id: window(), ...maybe('minimized', () => dice.chance(0.5)) }),
    'window.zoom': () => ({ window_id: window() }),
    'layout.arrange': () => ({ desktop_id: desktop(), mode: dice.of(['columns', 'rows', 'grid', 'main', 'stack']) }),
    'layout.resize': () =>
      dice.of([
        () => ({ split_id: split(), boundary_index: dice.upTo(3), delta: dice.upTo(20) / 10 - 1 }),
        () => ({ window_id: window(), axis: dice.of(['horizontal', 'vertical']), delta: 0.1 }),
        () => ({ group_id: group(), frame: rect() }),
      ])(),
    'layout.balance': () => maybe('desktop_id', desktop),
    'layout.replace': () => ({
      document: dice.chance(0.3)
        ? emptyDocument('ws_2')
        : { ...emptyDocument(WORKSPACE), overrides: { focus_wrap: dice.chance(0.5), history_limit: dice.upTo(9) } },
    }),
  }
  return make[id]()
}

/** What a payload that fits its schema may break: what it says itself. Anything else is a fault of its reducer. */
const mayBreak: { readonly [C in CommandId]?: readonly string[] } = {
  'layout.resize': ['group_frame', 'group_overlap'],
  'layout.replace': ['workspace'],
  'window.move': ['window_rect'],
  'window.open': ['window_rect'],
}

/** Commands of a session: many windows, for few commands need none; now and then everything is replaced. */
function pick(dice: Dice, { windows }: WindowDocument): CommandId {
  if (dice.chance(Object.keys(windows).length < 12 ? 0.3 : 0.02)) return 'window.open'
  // What is undone behind a focus has to bring that back too.
  if (dice.chance(0.3)) return dice.of(['window.focus', 'layout.undo', 'layout.redo'] as const)
  const id = dice.of(ids)
  return id === 'layout.replace' && dice.chance(0.8) ? 'window.move' : id
}

test('any sequence of commands keeps every invariant and every window, and undo and redo are exact', () =>
  forSeeds(3, async seed => {
    const dice = new Dice(seed)
    const undo: HistoryEntry[] = []
    const redo: HistoryEntry[] = []
    let document = emptyDocument(WORKSPACE)
    let done = 0
    for (let step = 0; step < STEPS; step++) {
      const before = canonicalJson(document)
      const id = pick(dice, document)
      let next: WindowDocument
      if (isHistoryCommand(id)) {
        const way = id === 'layout.undo' ? 'undo' : 'redo'
        const [from, to] = way === 'undo' ? [undo, redo] : [redo, undo]
        const entry = from.pop()
        if (!entry) continue
        const there = stepped(document, entry, way)
        const back = stepped(there.document, there.entry, way === 'undo' ? 'redo' : 'undo')
        assert.is(canonicalJson(back.document), before, `${id} and back is not where it was`)
        to.push(there.entry)
        next = there.document
      } else {
        const payload = payloadFor(id, document, dice)
        const settings = {
          new_window_policy: dice.of(['floating', 'beside_focus'] as const),
          raise_on_focus: dice.chance(0.5),
        }
        const mint = (prefix: string) => dice.ids.id(prefix)
        const context = { mint, revision: step, settings, layout: () => undefined }
        const reduced = reduce(document, id, payload, context)
        assert.is(canonicalJson(document), before, `${id} changed the document that it was given`)
        if (reduced.is === 'refused') {
          assert.not.equal(reduced.refusal.code, 'window_manager_unavailable')
          const isInvariant = reduced.refusal.code === 'window_manager_invalid_topology'
          const told = (reduced.refusal.more.diagnostics ?? []).map(({ code }) => code.replace('topology.', ''))
          const strange = told.filter(code => !mayBreak[id]?.includes(code))
          assert.equal(isInvariant ? strange : [], [], `${id} ${JSON.stringify(payload)}: ${reduced.refusal.message}`)
          continue
        }
        done++
        next = reduced.document
        if (id !== 'window.open' && id !== 'window.close' && id !== 'layout.replace')
          assert.equal(Object.keys(next.windows).sort(), Object.keys(document.windows).sort(), `${id} lost a window`)
        if (commandTable[id].recorded && !reduced.effect.onlyFocus) {
          undo.push(entryOf(id, {}, '2030-01-01T00:00:00.000Z', document, next))
          redo.length = 0
        }
      }
      assert.equal(diagnose(next, WORKSPACE), [], id)
      // The contract's changes have no place for overrides; the service compares them by themselves.
      const parts = (of: WindowDocument) => canonicalJson({ ...of, overrides: {} })
      const unchanged = parts(next) === parts(document)
      assert.is(
        Object.keys(changesBetween(document, next)).length === 0,
        unchanged,
        `${id} says wrongly what it changed`,
      )
      const told = happenings(document, next)
      const active = (id: string) =>
        document.desktops.some(({ groups }) =>
          groups.some(({ root }) => nodesIn(root).some(node => node.kind === 'stack' && node.active_id === id)),
        )
      assert.equal(told['stack.activated'].filter(active), [], `${id} activates what is active`)
      for (const opened of told['window.opened']) assert.not(Object.hasOwn(document.windows, opened))
      document = next
    }
    assert.ok(done > STEPS / 5, `only ${done} of ${STEPS} commands were done`)
    while (undo.length > 0) document = stepped(document, undo.pop() as HistoryEntry, 'undo').document
    const { windows, desktops, overrides } = document
    const tiled = desktops.flatMap(({ groups }) => groups.flatMap(({ root }) => windowsIn(root)))
    assert.equal([Object.keys(windows), tiled, overrides, desktops.length], [[], [], {}, 1])
  }))

test.run()
