/** What tests of users import from `hermod/testing`. */

export { type DrainOptions, drain } from './drain.ts'
export {
  type ExerciseSearchEngineOptions,
  exerciseSearchEngine,
  type SearchCase,
} from './exercise-search-engine.ts'
export {
  type Break,
  type Exercise,
  type ExerciseSinkOptions,
  exerciseSink,
  type Repair,
  type SampleEvent,
} from './exercise-sink.ts'
export { type FakeClock, fakeClock } from './fake-clock.ts'
export {
  type Accepted,
  type MemorySink,
  type MemorySinkOptions,
  memorySink,
} from './memory-sink.ts'
