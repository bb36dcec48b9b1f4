/** `svc/kit`: helpers for authors of plugins. They depend only on the kernel's contract. */
export { Alarm, type AlarmOptions, type AlarmWork } from './alarm.js'
export {
  type AnnotationKind,
  annotationKinds,
  annotationOf,
  annotationsOf,
  Cli,
  type CliArgument,
  type CliColumn,
  type CliScoped,
  type CliShorthand,
  type CliTable,
  type CliView,
  canRunCode,
  cli,
  columnsOf,
  Description,
  describe,
  type Item,
  type Member,
  type RouteCli,
  RouteTool,
  RunsCode,
  runsCode,
  type ShowMore,
  show,
  Thrown,
  type ThrownError,
  throws,
  tool,
  withTable,
  wrongAnnotation,
} from './annotations/index.js'
export { aborted, backoff } from './backoff.js'
export { canonicalJson, jsonOrText } from './canonical.js'
export { collectionOf, type Noun, type NounRoute, type Seen } from './collection.js'
export {
  type CommandPath,
  command,
  type KnownCommands,
  type Placeholder,
  placeholder,
  shellWord,
} from './commands/command-line.js'
export { DueHeap } from './due-heap.js'
export { Feed, type FeedItem, type FeedReset, type FeedSource, follow, positionOf } from './feed.js'
export { allowance } from './flood.js'
export {
  FrontmatterError,
  type HeadField,
  headValues,
  type Position,
  parseHead,
  type SplitFile,
  splitFrontmatter,
} from './frontmatter.js'
export { History, type HistoryOptions, type Retention } from './history.js'
export { issueText } from './issue-text.js'
export { type JsonFile, type JsonFileOptions, type JsonFileSync, jsonFile, jsonFileSync } from './json-file.js'
export { type Lease, LeaseErrors, type LeaseRef, LeaseTable } from './lease-table.js'
export { type Cut, type PageOf, Paging, type PagingOptions } from './page.js'
export { type Rate, TokenBucket } from './rate.js'
export {
  FileErrors,
  type OpenFileOptions,
  openRegularFile,
  openRegularFileSync,
  type ReadFileOptions,
  readBounded,
  readRegularFile,
  readRegularFileSync,
  unreadable,
} from './read-file.js'
export {
  parseSecretRef,
  resolveSecret,
  SecretErrors,
  type SecretRef,
  type SecretResolver,
  SecretResolvers,
  secretRef,
} from './secret-ref.js'
export { RedactionErrors, SecretSet } from './secret-set.js'
export { Serial, SerialBy } from './serial.js'
export { type SectionSetting, settingsSection } from './settings.js'
export { ifPossible } from './system-calls.js'
export { type Column, type Condition, column, matching, type Presence, type RowOf, Table, table } from './table.js'
export { clip, covers, cut, isJoiner, nearest, parseJson, shown, sqlName, text, UNSEEN, visible } from './text.js'
export { wholeOf } from './whole.js'
