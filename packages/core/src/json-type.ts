import type { StandardSchemaV1 } from "@standard-schema/spec";

// Compile-time checks of a task's schemas. A problem is an object type that names the option and carries the
// explanation: intersected with the parameter's type it turns into the compile error's text.

type NotJson =
  | bigint
  | symbol
  | Date
  | RegExp
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | WeakMap<WeakKey, unknown>
  | WeakSet<WeakKey>
  | ArrayBuffer
  | ArrayBufferView
  | Promise<unknown>
  | ((...args: never[]) => unknown);

type IsAny<T> = 0 extends 1 & T ? true : false;

/** Whether a type holds something that JSON cannot, six levels down; `unknown` and `any` are taken on trust. */
export type HasNotJson<T, Depth extends 0[] = []> =
  IsAny<T> extends true
    ? false
    : Depth["length"] extends 6
      ? false
      : T extends NotJson
        ? true
        : T extends string | number | boolean | null | undefined
          ? false
          : T extends readonly (infer Item)[]
            ? HasNotJson<Item, [...Depth, 0]>
            : T extends object
              ? true extends { [Key in keyof T]-?: HasNotJson<T[Key], [...Depth, 0]> }[keyof T]
                ? true
                : false
              : false;

/** `unknown` where JSON can hold what the payload schema takes, else the explanation. */
export type PayloadProblem<S> =
  S extends StandardSchemaV1<infer Input, unknown>
    ? true extends HasNotJson<Input>
      ? {
          payload: "JSON cannot hold what this schema takes (a Date, bigint, Map, …): accept a string or number and transform it";
        }
      : unknown
    : unknown;

/** `unknown` where a carry schema can start from nothing and take back what it gave, else the explanation. */
export type CarryProblem<S> =
  S extends StandardSchemaV1<infer Input, infer Output>
    ? undefined extends Input
      ? [Output] extends [Input]
        ? true extends HasNotJson<Input>
          ? {
              carry: "JSON cannot hold what this schema takes (a Date, bigint, Map, …): use strings or numbers";
            }
          : unknown
        : {
            carry: "the output of the carry schema must be assignable to its input: what one run leaves is what the next validates";
          }
      : {
          carry: "the carry schema must accept undefined, which gives the initial carry: give it a default";
        }
    : unknown;
