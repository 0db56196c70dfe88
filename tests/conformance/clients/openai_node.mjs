// The npm package openai: chat completions and responses, whole and streamed, errors.
import assert from "node:assert";
import OpenAI from "openai";

const [url, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const content = "What is 12 * 13?";
const messages = [{ role: "user", content }];

const cases = {
  async chat() {
    const { data, response } = await client.chat.completions
      .create({ model, messages })
      .withResponse();
    assert(data.choices[0].message.content);
    assert(data.usage.cost > 0);
    assert.equal(response.headers.get("x-request-id"), data._request_id);
  },
  async chat_stream() {
    let text = "";
    let usage = null;
    const asked = { model, messages, stream: true, stream_options: { include_usage: true } };
    for await (const chunk of await client.chat.completions.create(asked)) {
      text += chunk.choices[0]?.delta?.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert(text);
    assert(usage.total_tokens > 0);
  },
  async chat_stream_helper() {
    const stream = client.chat.completions.stream({ model, messages });
    assert((await stream.finalChatCompletion()).choices[0].message.content);
  },
  async responses() {
    const found = await client.responses.create({ model, input: content });
    assert(found.output_text);
    assert("orchestration_output_tokens" in found.usage.output_tokens_details);
  },
  async responses_stream() {
    const stream = client.responses.stream({ model, input: content });
    const numbers = [];
    for await (const event of stream) numbers.push(event.sequence_number);
    assert.deepEqual(numbers, [...numbers.keys()]);
    assert((await stream.finalResponse()).output_text);
  },
  async unknown_model_is_not_found() {
    const asked = client.chat.completions.create({ model: "podium/none", messages });
    await assert.rejects(asked, OpenAI.NotFoundError);
  },
};

for (const [name, run] of Object.entries(cases)) {
  let failed = "";
  await run().catch((error) => (failed = `${error.name}: ${error.message}`.slice(0, 300)));
  console.log(JSON.stringify({ case: name, failed }));
}
